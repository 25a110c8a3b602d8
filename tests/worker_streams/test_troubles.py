"""A Redis that is full, read-only, frozen or gone stops no host and loses no task, and the trouble is named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import weft
from tests.hot.test_attacks import demote, fill, make_room
from tests.redis_server import RedisServer
from tests.redis_server import own_redis as own_redis  # noqa: PLC0414 - a fixture
from tests.worker_streams.kit import SECONDS_MAX, Streams, choir, hosted, until

LARGE = "x" * 1_000_000
STOP_SECONDS_MAX = 60.0
"""Longer than all the time limits of a stop together. A host that hangs never gets there."""

TROUBLES: dict[str, tuple[Callable[[RedisServer], Any], str, Callable[[RedisServer], Any]]] = {
    "full": (fill, "maxmemory", make_room),
    "read-only": (demote, "read only replica", RedisServer.promote),
    "killed": (RedisServer.kill, "Redis does not answer", RedisServer.start),
    "frozen": (RedisServer.freeze, "Redis does not answer", RedisServer.thaw),
}


def trouble(streams: Streams) -> str:
    assert streams.host.worker_streams.counts is not None
    return streams.host.worker_streams.counts.problem


async def answered(streams: Streams, runs: Sequence[weft.Handle[Any]]) -> list[Any]:
    """Answer each task when it comes, as a worker does, until the runs are over. Returns their results.

    After a trouble, a task may come a lease later than the others, and a task that is not answered by then comes again.
    """
    over = asyncio.gather(*(run.result(timeout=SECONDS_MAX) for run in runs))
    while not over.done():
        for task in streams.read():
            streams.answer(task["token"], result=json.dumps(task["run_id"]))
            streams.forget(task)
        await asyncio.sleep(0.01)
    return await over


@pytest.mark.parametrize("name", TROUBLES)
def test_tasks_wait_for_the_end_of_a_trouble_which_is_named(name: str, own_redis: RedisServer) -> None:
    begin, says, end = TROUBLES[name]

    async def play() -> None:
        async with hosted(choir(), own_redis) as streams:
            first = await streams.app.start("say", {"text": "hello"}, id="r0")
            assert await answered(streams, [first]) == ["r0"]

            await asyncio.to_thread(begin, own_redis)
            runs = [await streams.app.start("say", {"text": "hello"}, id=f"r{n}") for n in range(1, 6)]
            await until(lambda: says in trouble(streams))
            await asyncio.to_thread(end, own_redis)
            assert await answered(streams, runs) == [f"r{n}" for n in range(1, 6)]
            await until(lambda: not trouble(streams))

    asyncio.run(play())


@pytest.mark.parametrize("name", TROUBLES)
def test_a_host_stops_whatever_redis_does(name: str, own_redis: RedisServer) -> None:
    begin, _, _ = TROUBLES[name]

    async def play() -> None:
        async with hosted(choir(), own_redis) as streams:
            await streams.app.start("say", {"text": "hello"}, id="r0")
            await streams.tasks(1)
            await asyncio.to_thread(begin, own_redis)
            for n in range(1, 31):
                # Together they are more than the system keeps for a server that reads nothing.
                await streams.app.start("say", {"text": LARGE}, id=f"r{n}")
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await streams.host.stop()

    asyncio.run(play())
