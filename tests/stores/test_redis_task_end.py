"""Background tasks that talk to Redis end when they are told to, though a cancellation may get lost on its way."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from tests.hot.hot_scene import HotScene, hot_scene
from tests.redis_server import RedisServer
from tests.redis_server import own_redis as own_redis  # noqa: PLC0414 - a fixture
from tests.worker_streams.kit import choir, hosted, until
from weft.stores.hot.keeper import TICK_SECONDS
from weft.stores.hot.policy import EVENT
from weft.stores.redis.buckets import RedisBuckets
from weft.stores.redis.hints import RedisHints
from weft.stores.redis.streams import RedisStreams
from weft.stores.redis.task_end import end_tasks

SECONDS_MAX = 60.0
AWAY = "redis://127.0.0.1:1"


class Deaf:
    """A call that never returns, and takes its first cancellation for something else, as the client library may."""

    def __init__(self) -> None:
        self.calls = 0
        self.ended = 0

    async def __call__(self, *_: Any, **__: Any) -> Any:
        self.calls += 1
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1


async def namespace() -> str:
    return "test"


def test_a_task_is_cancelled_until_it_is_over() -> None:
    async def scenario() -> None:
        tasks = [asyncio.create_task(Deaf()()) for _ in range(3)]
        await asyncio.sleep(0)
        await end_tasks(*tasks)
        assert all(task.cancelled() for task in tasks)

    asyncio.run(scenario())


def test_how_a_task_ended_does_not_matter() -> None:
    async def fail() -> None:
        raise OSError

    async def scenario() -> None:
        failed, done = asyncio.create_task(fail()), asyncio.create_task(asyncio.sleep(0))
        await asyncio.wait({failed, done})
        await end_tasks(failed, done)
        await end_tasks()

    asyncio.run(scenario())


def test_the_buckets_close() -> None:
    deaf = Deaf()

    async def scenario() -> None:
        buckets = RedisBuckets(AWAY, namespace)
        buckets._call_script = deaf  # type: ignore[method-assign]
        assert await buckets.take("k", wanted=1, per_second=1.0, burst=1.0) is None
        await until(lambda: deaf.calls == 1)
        async with asyncio.timeout(SECONDS_MAX):
            await buckets.close()

    asyncio.run(scenario())
    assert deaf.ended == deaf.calls


@pytest.mark.parametrize("what", ["listening", "sending"])
def test_hints_close(what: str) -> None:
    deaf = Deaf()

    async def scenario() -> None:
        hints = RedisHints(AWAY, deaf)
        if what == "listening":
            hints.listen(lambda: None, lambda _: None)
        else:
            hints.send()
        await until(lambda: deaf.calls == 1)
        async with asyncio.timeout(SECONDS_MAX):
            await hints.close()

    asyncio.run(scenario())
    assert deaf.ended == deaf.calls


def test_the_keeper_of_a_wal_and_the_drainer_stop() -> None:
    deaf = Deaf()

    async def acts(scene: HotScene) -> None:
        scene.durable.wals.note = deaf  # type: ignore[method-assign]
        await scene.hop()
        await asyncio.sleep(2 * TICK_SECONDS)
        assert deaf.calls == 1, "the keeper records the last entry"
        scene.durable.log.commit = deaf  # type: ignore[method-assign]
        await scene.hop(1)
        await asyncio.sleep(2 * EVENT.delay_seconds)
        assert deaf.calls == 2, "the hop is drained"

    hot_scene(acts, policy=EVENT)  # closes the store
    assert deaf.ended == 2


def test_the_streams_of_a_host_stop(own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = Deaf()
    for name in ("read", "add", "claim_idle"):
        monkeypatch.setattr(RedisStreams, name, deaf)

    async def scenario() -> None:
        async with asyncio.timeout(SECONDS_MAX), hosted(choir(), own_redis) as streams:
            await streams.app.start("say", {"text": "a"})
            await until(lambda: deaf.calls == 3)

    asyncio.run(scenario())
    assert deaf.ended == 3
