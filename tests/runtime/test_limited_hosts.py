"""Limits per key over hosts that come and go, and over a store that has lost a value."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.crash.hosting import QUICK, hosted
from weft.runtime.worker.flight import Flight
from weft.runtime.worker.step_worker import StepWorker

HASTY = msgspec.structs.replace(QUICK, drain_seconds=0.2)
LARGE = "x" * 200_000
"""A text that is stored as a blob."""


def calling(url: str, began: list[str], *, name: str, seconds: float) -> weft.App:
    """An app with a limited step and no workflow."""
    app = weft.App(url)

    @app.step(limit=weft.Limit(concurrency=1))
    async def call() -> str:
        began.append(name)
        await asyncio.sleep(seconds)
        return name

    return app


def asking(url: str) -> weft.App:
    """An app whose workflow calls that step, which it lacks."""
    app, elsewhere = weft.App(url), weft.Group()

    @elsewhere.step
    async def call() -> str: ...

    @app.workflow
    async def ask() -> str:
        return await call()

    return app


async def until(is_so: Any) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


def test_a_host_that_stops_while_a_limited_step_runs_does_not_lose_it(tmp_path: Path) -> None:
    async def play() -> None:
        url, began = f"sqlite:///{tmp_path}/weft.db", list[str]()
        app = asking(url)
        async with hosted(app, HASTY) as owner:
            async with hosted(calling(url, began, name="first", seconds=3600), HASTY):
                await owner.shared.refresh()  # so that its offer counts under the limit
                handle = await app.start("ask", id="x")
                await until(lambda: began)
            async with hosted(calling(url, began, name="second", seconds=0), HASTY):
                assert await handle.result(timeout="60s") == "second"
        assert began == ["first", "second"]

    asyncio.run(play())


def test_a_host_that_stops_removes_rows_that_nobody_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        url = f"sqlite:///{tmp_path}/weft.db"
        performed: list[Flight] = []
        monkeypatch.setattr(StepWorker, "perform", lambda _, flight: performed.append(flight))
        app = weft.App(url)

        @app.step(limit=weft.Limit(concurrency=1))
        async def call() -> None: ...

        @app.workflow
        async def ask() -> None:
            await call()

        patient = msgspec.structs.replace(HASTY, lease_seconds=60.0)
        async with hosted(app, patient) as host:
            handle = await app.start("ask", id="x")
            await until(lambda: performed)
            await handle.cancel()
            assert [row.unwanted for _, row in await host.store.tasks.taken_by([host.id], limit=9)] == [True]

        with sqlite3.connect(tmp_path / "weft.db") as connection:
            assert connection.execute("SELECT count(*) FROM tasks").fetchone() == (0,)

    asyncio.run(play())


def test_runs_that_wait_begin_when_a_deploy_has_removed_the_limit(tmp_path: Path) -> None:
    """It was the last limit of a workflow in the store, so no host looked for runs that wait for one."""
    url = f"sqlite:///{tmp_path}/weft.db"

    def ordering(limit: weft.Limit | None) -> weft.App:
        app = weft.App(url)

        @app.workflow(limit=limit)
        async def order(number: int) -> int:
            return number

        return app

    async def play() -> None:
        before, after = ordering(weft.Limit(rate="1/1h")), ordering(None)
        async with hosted(before):
            handles = [await before.start("order", {"number": number}) for number in range(3)]
            assert await handles[0].result() == 0
            assert [await handle.status() for handle in handles[1:]] == ["pending", "pending"]
        async with hosted(after):
            assert [await after.get(handle.id).result(timeout="20s") for handle in handles] == [0, 1, 2]

    asyncio.run(play())


def lose_values(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        assert connection.execute("DELETE FROM blobs").rowcount > 0


def limited(url: str) -> weft.App:
    app = weft.App(url)
    limit = weft.Limit(concurrency=5, key="who")

    @app.workflow(limit=limit)
    async def whole(who: str, text: str) -> int:
        return len(text)

    @app.step
    async def produce(who: str) -> str:
        return LARGE

    @app.step(limit=limit)
    async def give_back(who: str, result: str) -> None: ...

    @app.step(retries=0)
    async def fail() -> None:
        raise ValueError("no")

    steps = {
        "produce": {"step": "produce", "undo": "give_back", "with": {"who": "${input.who}"}, "next": "pause"},
        "pause": {"wait": "1s", "next": "fail"},
        "fail": {"step": "fail"},
    }
    app.graph({"weft": "graph/1", "name": "undone", "input": {"who": "string"}, "nodes": steps})
    return app


def test_a_lost_input_of_a_limited_workflow_holds_only_its_run(tmp_path: Path) -> None:
    async def play() -> None:
        url = f"sqlite:///{tmp_path}/weft.db"
        async with weft.Client(url) as client:
            async with hosted(limited(url)):  # it publishes the workflow
                pass
            await client.start("whole", {"who": "ann", "text": LARGE}, id="lost")
        lose_values(tmp_path / "weft.db")

        app = limited(url)
        async with hosted(app):
            other = await app.start("whole", {"who": "ann", "text": "abc"})
            assert await other.result(timeout="60s") == 3
            async with asyncio.timeout(200):  # the host reads its input in a time of its own
                while await app.get("lost").status() != "held":
                    await asyncio.sleep(0.01)

    asyncio.run(play())


def test_a_lost_value_in_an_undo_with_a_limit_does_not_end_the_host(tmp_path: Path) -> None:
    async def play() -> None:
        url = f"sqlite:///{tmp_path}/weft.db"
        app = limited(url)
        async with hosted(app):
            handle = await app.start("undone", {"who": "ann"}, id="lost")
            async for event in handle.events(follow=True):
                if event.kind == "timer_set":
                    break
        lose_values(tmp_path / "weft.db")

        app = limited(url)
        async with hosted(app):
            with pytest.raises(weft.RunFailed):
                await app.get("lost").result(timeout="60s")
            other = await app.start("whole", {"who": "ann", "text": "abc"})
            assert await other.result(timeout="60s") == 3

    asyncio.run(play())
