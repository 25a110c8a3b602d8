"""A Redis that is emptied while tasks are out loses none of them, and they come again under the same keys."""

from __future__ import annotations

import asyncio
import json

import pytest

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
