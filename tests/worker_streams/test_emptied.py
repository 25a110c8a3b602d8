"""A Redis that is emptied while tasks are out loses none of them, and they come again under the same keys."""

from __future__ import annotations

import asyncio
import json

import pytest

import weft
from tests.redis_server import RedisServer
from tests.redis_server import own_redis as own_redis  # noqa: PLC0414 - a fixture
from tests.worker_streams.kit import QUEUE, choir, hosted, until, worker

LEASE = 1.0
AWAIT_SECONDS = 120


async def empty_while_out(redis: RedisServer, count: int) -> None:
    """Empty Redis when a third of the tasks is with workers, some have been answered, and the rest waits."""
    async with hosted(choir(), redis, lease=LEASE) as streams:
        handles = [await streams.app.start("say", {"text": f"t{n}"}, id=f"r{n}") for n in range(count)]
        await until(lambda: streams.length(f"wf.tasks.{QUEUE}") == count)
        entries = streams.command("XRANGE", streams.name(f"wf.tasks.{QUEUE}"), "-", "+")
        before = {words[words.index("run_id") + 1]: words[words.index("key") + 1] for _, words in entries}
        held = streams.read(limit=count // 3)
        for task in held[: count // 10]:
            streams.answer(task["token"], result=json.dumps(json.loads(task["input"])["text"].upper()))

        redis.flush()

        await until(lambda: streams.counts["again"] + streams.counts["answered"] >= count)
        entries = streams.command("XRANGE", streams.name(f"wf.tasks.{QUEUE}"), "-", "+")
        for _, words in entries:
            assert words[words.index("key") + 1] == before[words[words.index("run_id") + 1]]
        with worker(redis, streams.prefix), worker(redis, streams.prefix):
            results = [await handle.result(timeout=AWAIT_SECONDS) for handle in handles]
            assert results == [f"T{n}" for n in range(count)]
            for task in held:  # whoever was at work when Redis was emptied
                streams.answer(task["token"], result='"LATE"')
            await streams.is_empty()
        assert streams.counts["answered"] == count
        assert streams.counts["bad"] == 0
        assert [await handle.result() for handle in handles] == results


def test_an_emptied_redis_loses_no_task(own_redis: RedisServer) -> None:
    asyncio.run(empty_while_out(own_redis, 30))


@pytest.mark.proof
def test_an_emptied_redis_loses_none_of_a_thousand_tasks(own_redis: RedisServer) -> None:
    asyncio.run(empty_while_out(own_redis, 1_000))


def test_a_task_that_must_not_be_performed_twice_is_not_published_again(own_redis: RedisServer) -> None:
    """A worker may have performed it. What became of it is unknown."""

    async def scenario() -> None:
        async with hosted(choir(effect="irreversible"), own_redis, lease=LEASE) as streams:
            handle = await streams.app.start("say", {"text": "t"}, id="r1")
            await until(lambda: streams.length(f"wf.tasks.{QUEUE}") == 1)

            own_redis.flush()

            with pytest.raises(weft.RunFailed) as failed:
                await handle.result(timeout=AWAIT_SECONDS)
            assert failed.value.failure.code == "step.outcome_unknown"
            assert (streams.counts["again"], streams.counts["lost"]) == (0, 1)

    asyncio.run(scenario())


def test_a_task_whose_entry_is_missing_again_is_lost_and_begins_anew(own_redis: RedisServer) -> None:
    """So deliveries are counted, and a task that empties Redis is given up some time."""

    async def scenario() -> None:
        async with hosted(choir(), own_redis, lease=LEASE) as streams:
            handle = await streams.app.start("say", {"text": "t"}, id="r1")
            await until(lambda: streams.length(f"wf.tasks.{QUEUE}") == 1)
            own_redis.flush()
            await until(lambda: streams.counts["again"] == 1)
            own_redis.flush()
            await until(lambda: streams.counts["lost"] == 1)

            (task,) = await streams.tasks()
            streams.answer(task["token"], result='"T"')
            assert await handle.result(timeout=AWAIT_SECONDS) == "T"

    asyncio.run(scenario())
