"""What a patch from another process may ask of the hosts of a store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft

NODES: dict[str, Any] = {
    "wait": {"receive": "go", "next": "work"},
    "work": {"step": "work", "with": {"n": 1}},
}
GIVEN = "/nodes/work/with"


def _app(url: str) -> weft.App:
    app = weft.App(url)

    @app.step
    def work(n: int, times: int = 1) -> int:
        return n * times

    @app.step
    def other(text: str) -> str:
        return text

    @app.workflow
    async def code(ctx: weft.Context, n: int) -> int:
        await ctx.receive("go")
        return await work(n)

    app.graph({"name": "order", "nodes": NODES})
    return app


def _replace(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": path, "value": value}]


async def _plans(url: str, *patches: Any) -> list[weft.PatchPlan]:
    """Return what another process is told about patches of a run that waits."""
    async with _app(url) as app:
        await app.start("order", id="o-1")
        async with weft.Client(url) as client:
            return [await client.get("o-1").patch(patch, dry_run=True) for patch in patches]


def test_another_process_knows_the_steps_of_the_hosts(tmp_path: Path) -> None:
    hosted = {"step": "other", "with": {"text": "a"}}
    (plan,) = asyncio.run(_plans(f"sqlite:///{tmp_path}/weft.db", _replace("/nodes/work", hosted)))
    assert plan.refusals == []


@pytest.mark.parametrize("memory", [False, True])
def test_arguments_that_the_step_does_not_take_are_refused(tmp_path: Path, memory: bool) -> None:
    async def ask() -> list[weft.PatchPlan]:
        patches = [_replace(GIVEN, {"m": 1}), _replace(GIVEN, {"n": 1, "times": 2})]
        if not memory:
            return await _plans(f"sqlite:///{tmp_path}/weft.db", *patches)
        async with _app("memory://") as app:
            handle = await app.start("order", id="o-1")
            return [await handle.patch(patch, dry_run=True) for patch in patches]

    wrong, right = asyncio.run(ask())
    assert [(one.code, one.path) for one in wrong.refusals] == [
        ("patch.wrong_argument", "nodes.work.with.m"),
        ("patch.wrong_argument", "nodes.work.with"),
    ]
    assert right.refusals == []


def test_the_result_of_a_hosted_step_is_set_in_a_fork_from_another_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def fork() -> str:
        async with _app(url) as app:
            run = await app.start("code", {"n": 1}, id="c-1")
            async with weft.Client(url) as client:
                with pytest.raises(weft.Refused, match="d"):
                    await client.get("c-1").fork(set={"d": 1})  # a letter of no name
                return (await client.get(run.id).fork(set={"work": 7})).id

    assert asyncio.run(fork()).startswith("c-1~")
