"""The timeout of a step holds for stream workers too: one that hangs may touch its task for ever."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import msgspec
import pytest

import weft
from tests.redis_server import shared_redis
from tests.worker_streams.kit import Streams, choir, hosted
from weft.ports.worker_streams import PublishedEntry
from weft.runtime.clock import SystemClock
from weft.runtime.worker_streams.overdue import OverdueTasks
from weft.runtime.worker_streams.tokens import claimed_ticket
from weft.tokens import pack

LEASE = 0.6
AWAIT_SECONDS = 60
TOUCH_SECONDS = 0.05


class HandClock(SystemClock):
    """A clock whose monotonic time tests move by hand."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@contextlib.asynccontextmanager
async def touching(streams: Streams, *tasks: Mapping[str, str]) -> AsyncIterator[None]:
    """Touch tasks, as workers that live do."""

    async def touch() -> None:
        while True:
            for task in tasks:
                streams.command("XCLAIM", task["stream"], "weft", "w", 0, task["id"], "JUSTID")
            await asyncio.sleep(TOUCH_SECONDS)

    toucher = asyncio.create_task(touch())
    try:
        yield
    finally:
        toucher.cancel()


def test_an_attempt_that_takes_too_long_fails_and_the_next_one_begins() -> None:
    async def scenario() -> None:
        async with hosted(choir(timeout="1s", retries=1), shared_redis(), lease=LEASE) as streams:
            handle = await streams.app.start("say", {"text": "t"}, id="r1")
            (first,) = await streams.tasks()
            async with touching(streams, first):
                (second,) = await streams.tasks()
            assert (second["attempt"], second["key"]) == ("2", first["key"])
            assert (streams.counts["overdue"], streams.counts["lost"]) == (1, 0)

            streams.answer(first["token"], result='"LATE"')
            streams.answer(second["token"], result='"T"')
            assert await handle.result(timeout=AWAIT_SECONDS) == "T"
            assert streams.counts["answered"] == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("options", "code"), [({}, "step.timed_out"), ({"effect": "irreversible"}, "step.outcome_unknown")]
)
def test_the_last_attempt_that_takes_too_long_fails_the_run(options: Mapping[str, str], code: str) -> None:
    async def scenario() -> None:
        async with hosted(choir(timeout="1s", retries=0, **options), shared_redis(), lease=LEASE) as streams:
            handle = await streams.app.start("say", {"text": "t"}, id="r1")
            (task,) = await streams.tasks()
            async with touching(streams, task):
                with pytest.raises(weft.RunFailed, match="shout took longer than 1000 ms") as failed:
                    await handle.result(timeout=AWAIT_SECONDS)
            assert failed.value.failure.code == code
            await streams.is_empty()

    asyncio.run(scenario())


def test_the_time_that_a_task_waits_for_a_worker_does_not_count() -> None:
    async def scenario() -> None:
        async with hosted(choir(timeout="1s", retries=0), shared_redis(), lease=LEASE) as streams:
            handles = [await streams.app.start("say", {"text": "t"}, id=f"r{n}") for n in range(2)]
            (task,) = await streams.tasks(limit=1)
            async with touching(streams, task):
                with pytest.raises(weft.RunFailed):
                    await next(one for one in handles if one.id == task["run_id"]).result(timeout=AWAIT_SECONDS)
            (waiting,) = await streams.tasks()
            streams.answer(waiting["token"], result=json.dumps("T"))
            other = next(one for one in handles if one.id == waiting["run_id"])
            assert await other.result(timeout=AWAIT_SECONDS) == "T"

    asyncio.run(scenario())


def test_a_forged_claim_of_a_shorter_timeout_ends_no_attempt() -> None:
    async def scenario() -> None:
        async with hosted(choir(timeout="10s", retries=0), shared_redis()) as streams:
            handle = await streams.app.start("say", {"text": "t"}, id="r1")
            (task,) = await streams.tasks()
            clock = HandClock()
            overdue = OverdueTasks(replace(streams.host.worker_streams._parts, clock=clock))
            claims = claimed_ticket(task["token"])
            assert claims is not None
            number, payload, proof = task["token"].split(".")
            shorter = pack(msgspec.structs.replace(claims, until_s=claims.issued_s + 1))
            assert shorter != payload

            forged = f"{number}.{shorter}.{proof}"
            for seconds, token, ended in [(0, task["token"], 0), (9, forged, 0), (1, task["token"], 1)]:
                clock.seconds += seconds
                await overdue.end({task["stream"]: {task["id"]: PublishedEntry(token, is_given=True)}})
                assert streams.counts["overdue"] == ended
            with pytest.raises(weft.RunFailed, match="took longer than 10000 ms"):
                await handle.result(timeout=AWAIT_SECONDS)

    asyncio.run(scenario())
