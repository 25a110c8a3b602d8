"""A loop that a host lives by is started again when it ends; if that does not help, the host ends."""

from __future__ import annotations

import asyncio

import weft
from tests.code.desk import Desk
from tests.code.timeless import play
from weft.runtime.background import RESTARTS_MAX, BackgroundLoop


class Odd(BaseException):
    pass


def test_a_loop_that_ends_is_started_again_and_at_last_given_up() -> None:
    started: list[int] = []
    failed: list[tuple[str, BaseException]] = []

    async def body() -> None:
        started.append(len(started))
        if len(started) == 1:
            return
        raise Odd("no")

    async def scene() -> None:
        loop = BackgroundLoop("working", body, lambda name, error: failed.append((name, error)))
        loop.start()
        await asyncio.sleep(5)
        await loop.stop()

    play(scene())
    assert len(started) == RESTARTS_MAX + 1
    ((name, error),) = failed
    assert (name, type(error)) == ("working", Odd)


def test_a_loop_that_was_stopped_stays_so() -> None:
    started: list[int] = []

    async def body() -> None:
        started.append(1)
        await asyncio.sleep(3600)

    async def scene() -> None:
        loop = BackgroundLoop("working", body, lambda *_: None)
        loop.start()
        await asyncio.sleep(1)
        await loop.stop()
        await asyncio.sleep(1)

    play(scene())
    assert started == [1]


def test_a_step_that_cancels_every_task_it_finds_stops_nothing() -> None:
    app = weft.App("memory://")
    rounds: list[int] = []

    @app.step(retries=weft.Retry(3, delay="1ms"))
    async def vandal() -> str:
        rounds.append(1)
        if len(rounds) == 1:
            for task in asyncio.all_tasks() - {asyncio.current_task(), spared}:  # type: ignore[arg-type]
                task.cancel()
        return "done"

    @app.step(retries=weft.Retry(3, delay="1ms"))
    async def bystander() -> str:
        await asyncio.sleep(1)
        return "stayed"

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        return list(await asyncio.gather(bystander(), vandal()))

    spared: asyncio.Task[object] | None = None

    async def scene() -> list[str]:
        nonlocal spared
        spared = asyncio.current_task()
        handle = await app.start(flow(), id="run")
        return await handle.result()

    assert Desk(app).play(scene) == ["stayed", "done"]
