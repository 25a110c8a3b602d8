"""A store that takes nothing for a while: new starts and commands hear of it.

What was accepted goes on by itself afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

import weft
from tests.server.kit import serving
from tests.servers import Cluster, own_cluster  # noqa: F401  # a fixture
from weft.errors import Full, RunFinished, StoreError, Unavailable

LINES_MAX = 30
"""Of the log, for all that goes wrong in one of these tests."""

SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON weft.events FOR EACH ROW EXECUTE FUNCTION slow();
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("only root may mount a file system")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@contextlib.contextmanager
def filled(place: Path) -> Iterator[None]:
    """No room is left there."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1024))
    try:
        yield
    finally:
        filler.unlink()


def shop(url: str) -> tuple[weft.App, asyncio.Event]:
    app = weft.App(url)
    gate = asyncio.Event()

    @app.step
    async def hold(number: int) -> int:
        await gate.wait()
        return number

    @app.workflow
    async def order(ctx: weft.Context, number: int) -> int:
        return await hold(await hold(number))

    @app.workflow
    async def talk(ctx: weft.Context) -> list[str]:
        return [await ctx.receive("note", str), await ctx.receive("note", str)]

    return app, gate


async def play(url: str, trouble: Callable[[], AbstractAsyncContextManager[None]], told: type[StoreError]) -> None:
    """Runs are accepted, the store takes nothing, their steps end; then it is mended.

    Two messages are sent at once, without waiting for an answer in between. Their order is not promised: each of them
    may have been taken while its answer got lost, and then sending it again changes nothing.
    """
    app, gate = shop(url)
    async with app:
        accepted = [await app.start("order", {"number": n}, id=f"a{n}") for n in range(20)]
        talks = {name: await app.start("talk", id=name) for name in ("sent", "paused", "cancelled", "asked")}
        async with trouble():
            gate.set()
            await _all_refused(talks)
            for n in range(3):
                with pytest.raises(told):
                    await app.start("order", {"number": n}, id=f"refused-{n}")
            await _all_refused(talks)
        for again in (
            lambda: talks["sent"].send("note", "a", key="one"),
            lambda: talks["sent"].send("note", "b", key="two"),
            talks["paused"].pause,
            talks["paused"].resume,
            talks["cancelled"].cancel,
        ):
            await _until_told(again)
        assert sorted(await talks["sent"].result(timeout="60s")) == ["a", "b"]
        with pytest.raises(weft.RunCancelled):
            await talks["cancelled"].result(timeout="60s")
        assert await talks["paused"].status() == "running"
        assert [await handle.result(timeout="60s") for handle in accepted] == list(range(20))
        assert await (await _until_taken(app)).result(timeout="60s") == 7


async def _all_refused(talks: dict[str, weft.Handle[Any]]) -> None:
    """Commands hear of it soon, and do not wait until the store is mended."""
    told = await asyncio.gather(
        talks["sent"].send("note", "a", key="one"),
        talks["sent"].send("note", "b", key="two"),
        talks["paused"].pause(),
        talks["cancelled"].cancel(),
        talks["asked"].request("note", "c", key="three"),
        return_exceptions=True,
    )
    assert [error for error in told if not isinstance(error, Unavailable | Full)] == []


async def _until_told(command: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            return await command()
        except StoreError:
            await asyncio.sleep(0.05)
        except RunFinished:
            return None  # the cancel whose fate was not known had been taken


async def _until_taken(app: weft.App) -> weft.Handle[int]:
    while True:
        try:
            return await app.start("order", {"number": 7}, id="later")
        except StoreError:
            await asyncio.sleep(0.05)


def test_a_full_disk_refuses_starts_and_loses_nothing(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    @asynccontextmanager
    async def trouble() -> AsyncIterator[None]:
        with filled(small_disk):
            yield

    with caplog.at_level(logging.WARNING, "weft"):
        asyncio.run(play(f"sqlite:///{small_disk}/weft.db", trouble, Full))
    assert len(caplog.records) < LINES_MAX
    assert any("no room" in record.getMessage() for record in caplog.records)


def test_a_server_on_a_full_disk_says_so_and_is_ready_again_by_itself(small_disk: Path) -> None:
    app, gate = shop(f"sqlite:///{small_disk}/weft.db")
    with serving(app) as server:
        server.loop.call_soon_threadsafe(gate.set)
        assert server.result(server.start("order", "first", number=1))["output"] == 1
        server.start("talk", "talk")
        with filled(small_disk):
            for n in range(3):
                answer = server.post("/api/v1/runs", {"workflow": "order", "id": f"r{n}", "input": {"number": n}})
                assert (answer.status, answer.code) == (503, "store.full")
                assert answer.headers["retry-after"]
            for path, body in (
                ("messages", {"name": "note", "body": "a"}),
                ("requests", {"name": "note", "body": "a"}),
                ("pause", {}),
                ("resume", {}),
                ("retry", {}),
                ("set", {"place": "note", "output": "a"}),
                ("cancel", {}),
            ):
                answer = server.post(f"/api/v1/runs/talk/{path}", body)
                assert (answer.status, answer.code) == (503, "store.full"), path
                assert answer.headers["retry-after"]
            assert server.get("/readyz").status == 503
            assert server.get("/healthz").status == 200
        while server.get("/readyz").status != 200:
            time.sleep(0.02)
        assert server.result(server.start("order", "last", number=2))["output"] == 2


@pytest.mark.proof
def test_a_locked_table_refuses_starts_and_loses_nothing(
    own_cluster: Cluster,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    @asynccontextmanager
    async def trouble() -> AsyncIterator[None]:
        connection = await asyncpg.connect(own_cluster.url())
        async with connection.transaction():
            await connection.execute("LOCK TABLE weft.events IN ACCESS EXCLUSIVE MODE")
            yield
        await connection.close()

    with caplog.at_level(logging.WARNING, "weft"):
        asyncio.run(play(own_cluster.url(), trouble, Unavailable))
    assert len(caplog.records) < LINES_MAX


@pytest.mark.proof
def test_a_statement_timeout_refuses_starts_and_loses_nothing(own_cluster: Cluster) -> None:  # noqa: F811
    @asynccontextmanager
    async def trouble() -> AsyncIterator[None]:
        connection = await asyncpg.connect(own_cluster.url())
        # In this order: a session that sleeps without a limit would hold its locks for all that time.
        await connection.execute("ALTER SYSTEM SET statement_timeout = '200ms'")
        await connection.execute("SELECT pg_reload_conf()")
        while await connection.fetchval("SHOW statement_timeout") != "200ms":
            await asyncio.sleep(0.01)
        await connection.execute(SLOW)
        yield
        await connection.execute("ALTER SYSTEM RESET statement_timeout")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.execute("DROP FUNCTION slow CASCADE")
        await connection.close()

    asyncio.run(play(own_cluster.url(), trouble, Unavailable))


def test_a_host_whose_file_was_deleted_says_so_and_takes_nothing_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        app, gate = shop(f"sqlite:///{tmp_path}/weft.db")
        gate.set()
        async with app:
            assert await (await app.start("order", {"number": 1}, id="first")).result() == 1
            (tmp_path / "weft.db").unlink()
            with pytest.raises(Unavailable):
                await app.start("order", {"number": 2}, id="lost")
            while not any("deleted or replaced" in record.getMessage() for record in caplog.records):
                await asyncio.sleep(0.01)

    with contextlib.suppress(StoreError):  # nor can it say good-bye
        asyncio.run(scenario())
    assert any("deleted or replaced" in record.getMessage() for record in caplog.records)
