"""Secrets are never in a bundle, and what was asked for is left out too."""

import json
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.bundles.kit import go, imported, recorded, shop, unzipped
from weft.core.ids import RunId
from weft.errors import UsageError
from weft.runtime.bundles.format import Manifest, manifest_of
from weft.runtime.bundles.recorded import read_recorded, replay_recorded
from weft.runtime.bundles.service import BundleService
from weft.stores.memory import MemoryStore

SECRET = "hunter2-tr0ub4dor"


def manifest(data: bytes) -> Manifest:
    return manifest_of(unzipped(data)["manifest.json"])


def leaky() -> weft.App:
    """An app whose step returns a secret that another process revealed: the store has it."""
    app = weft.App("memory://")

    @app.step
    def leak(size: int) -> dict[str, Any]:
        # In two parts, so that this process does not know it as a secret and the log gets it.
        return {"auth": ["Bearer hunter2" + "-tr0ub4dor"], "pad": "x" * size}

    @app.step(retries=0)
    def fail(text: str) -> None:
        raise ValueError("no hunter2" + "-tr0ub4dor " + text)

    @app.workflow
    async def order(ctx: weft.Context, key: weft.Secret, size: int) -> None:
        await leak(size)
        await fail("please")

    return app


@pytest.mark.parametrize("size", [1, 60_000])
def test_a_secret_that_got_into_the_log_does_not_get_into_a_bundle(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)

    async def scenario() -> bytes:
        app = leaky()
        async with app:
            handle = await app.start("order", {"key": weft.Secret("env:SHOP_KEY"), "size": size}, id="leaky")
            with pytest.raises(weft.RunFailed):
                await handle.result(timeout=200)
            return await BundleService(app.service).export("leaky")

    data = go(scenario())

    everything = b"".join(unzipped(data).values())
    assert SECRET.encode() not in everything
    assert b'{"$secret":"env:SHOP_KEY"}' in everything
    assert b'{"$redacted":"env:SHOP_KEY"}' in everything
    about = manifest(data)
    assert {one.why for one in about.redacted} == {"env:SHOP_KEY"}
    assert all(one.seq > 0 and one.pointer for one in about.redacted)
    store = MemoryStore()
    go(imported(store, data))
    (run,) = read_recorded(data)
    with pytest.raises(UsageError, match="left out"):
        go(replay_recorded(run, lambda *_: None))


def test_what_a_pointer_names_is_left_out_of_events_and_blobs() -> None:
    async def scenario() -> tuple[bytes, bytes]:
        app = weft.App("memory://")

        @app.workflow
        async def order(ctx: weft.Context, card: dict[str, Any]) -> dict[str, Any]:
            return card

        async with app:
            for size, run in ((1, "small"), (60_000, "large")):
                handle = await app.start("order", {"card": {"number": "4111", "pad": "x" * size}}, id=run)
                await handle.result(timeout=200)
            bundles = BundleService(app.service)
            pointers = ["/input/card/number", "/output/number"]
            return await bundles.export("small", redact=pointers), await bundles.export("large", redact=pointers)

    for data in go(scenario()):
        everything = b"".join(unzipped(data).values())
        assert b"4111" not in everything
        assert everything.count(b'{"$redacted":"asked for"}') == 2
        assert {one.pointer for one in manifest(data).redacted} == {"/input/card/number", "/output/number"}
        store = MemoryStore()
        go(imported(store, data))


def test_a_pointer_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError):
        go(recorded(shop(), redact=["input"]))


def test_an_app_writes_and_reads_files(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shop(f"sqlite:///{tmp_path}/a.db") as app:
            handle = await app.start("order", {"n": 3}, id="o-1")
            await handle.result(timeout=200)
            await app.export("o-1", tmp_path / "o.zip", tree=True, redact=["/input/n"])
        async with weft.Client(f"sqlite:///{tmp_path}/b.db") as client:
            done = await client.import_(tmp_path / "o.zip")
            assert done.runs[0].id == "o-1"
            assert done.redacted > 0
            row = await client.service.row(RunId("o-1"))
            assert row.status == "imported"
            await client.export("o-1", tmp_path / "again.zip")
        assert json.loads(unzipped((tmp_path / "again.zip").read_bytes())["manifest.json"])["weft"] == "bundle/1"

    go(scenario())
