"""Exported, imported, forked and finished on another store: the result is the same as at home."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.bundles.kit import go, recorded, shop
from weft.core.ids import RunId


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_fork_finishes_elsewhere_as_at_home(kind: str, tmp_path: Path) -> None:
    async def at_home() -> tuple[bytes, int]:
        app = shop(f"sqlite:///{tmp_path}/home.db")
        data = await recorded(app, 7)
        async with app:
            await app.get("o-1").send("paid", 1)
            return data, await app.get("o-1").result(timeout=200)

    async def elsewhere(data: bytes) -> Any:
        (tmp_path / "o.zip").write_bytes(data)
        app = shop("memory://" if kind == "memory" else f"sqlite:///{tmp_path}/away.db")
        async with app:
            await app.import_(tmp_path / "o.zip")
            original = app.get("o-1")
            seq = (await app.service.row(RunId("o-1"))).seq
            fork = await original.fork(at=seq, id="again")
            await fork.send("paid", 1)
            result = await fork.result(timeout=200)
            assert await original.status() == "imported"
            return result

    data, result = go(at_home())
    assert go(elsewhere(data)) == result


def test_a_graph_that_failed_is_repaired_elsewhere(tmp_path: Path) -> None:
    document = {
        "weft": "graph/1",
        "name": "mending",
        "nodes": {
            "first": {"step": "one", "save": {"state.a": "${output}"}, "next": "second"},
            "second": {"step": "two", "with": {"n": "${state.a}"}, "save": {"state.b": "${output}"}},
        },
        "output": {"b": "${state.b}"},
    }

    def app(url: str, *, mended: bool, calls: list[str]) -> weft.App:
        made = weft.App(url)

        @made.step
        def one() -> int:
            calls.append("one")
            return 20

        @made.step(retries=0)
        def two(n: int) -> int:
            calls.append("two")
            if not mended:
                raise ValueError("broken")
            return n + 1

        made.graph(document)
        return made

    async def scenario() -> None:
        at_home: list[str] = []
        async with app("memory://", mended=False, calls=at_home) as home:
            handle = await home.start("mending", id="m")
            with pytest.raises(weft.RunFailed):
                await handle.result(timeout=200)
            await home.export("m", tmp_path / "m.zip")
        calls: list[str] = []
        async with app(f"sqlite:///{tmp_path}/away.db", mended=True, calls=calls) as away:
            await away.import_(tmp_path / "m.zip")
            fork = await away.get("m").fork(before="second", id="m2")
            assert await fork.result(timeout=200) == {"b": 21}
            assert calls == ["two"], "what was recorded is not performed again"
            await asyncio.sleep(0)

    go(scenario())
