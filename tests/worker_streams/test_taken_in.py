"""What hosts take in: an answer stays where it is until it is settled, and nobody answers or ends what is another's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.redis_server import shared_redis
from tests.worker_streams.kit import QUEUE, choir, hosted, until
from weft.errors import Unavailable
from weft.runtime.worker_streams import done


def test_an_answer_that_could_not_be_settled_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the host that has read it had died."""
    monkeypatch.setattr(done, "IDLE_MS", 50)

    async def scenario() -> None:
        async with hosted(choir(), shared_redis(), lease=6.0) as streams:
            tasks = streams.service.store.tasks
            settle, failed = tasks.settle, []

            async def away_at_first(*given: Any) -> bool:
                if not failed:
                    failed.append(given)
                    raise Unavailable("away")
                return await settle(*given)

            monkeypatch.setattr(tasks, "settle", away_at_first)
            handle = await streams.app.start("say", {"text": "t"}, id="r1")
            (task,) = await streams.tasks()
            streams.answer(task["token"], result='"T"')
            streams.forget(task)

            assert await handle.result(timeout=60) == "T"
            assert failed
            assert (streams.counts["again"], streams.counts["lost"]) == (0, 0)

    asyncio.run(scenario())


def test_an_answer_that_another_host_is_about_to_settle_is_left_to_it() -> None:
    async def scenario() -> None:
        async with hosted(choir(), shared_redis(), lease=30.0) as streams:
            parts = streams.host.worker_streams._parts
            stream = streams.name("elsewhere")
            assert await parts.prepare([stream]) == [stream]
            streams.command("XADD", stream, "*", "token", "none")
            assert len(await parts.server.read([stream], count=10, wait_ms=1)) == 1

            assert await streams.host.worker_streams._reader.take_over([stream]) == 0

    asyncio.run(scenario())


def test_an_entry_with_the_token_of_another_streams_task_ends_nothing() -> None:
    async def scenario() -> None:
        async with hosted(choir(), shared_redis(), lease=0.5, streams=(QUEUE, "other")) as streams:
            handle = await streams.app.start("say", {"text": "t"}, id="r1")
            await until(lambda: streams.length(f"wf.tasks.{QUEUE}") == 1)
            ((_, words),) = streams.command("XRANGE", streams.name(f"wf.tasks.{QUEUE}"), "-", "+")
            token = words[words.index("token") + 1]
            streams.command("XADD", streams.name("wf.tasks.other"), "*", "token", token)
            assert len(await streams.tasks(queue="other")) == 1
            await until(lambda: streams.length("wf.tasks.other") == 0)
            assert streams.counts["lost"] == 0

            (task,) = await streams.tasks()
            streams.answer(task["token"], result='"T"')
            assert await handle.result(timeout=20) == "T"

    asyncio.run(scenario())


def test_a_tenant_does_not_get_blobs_of_others_by_naming_them() -> None:
    async def scenario() -> None:
        async with hosted(choir(retries=0), shared_redis()) as streams:
            handle = await streams.app.start("say", {"text": "t"}, id="@acme/r1")
            (task,) = await streams.tasks(tenant="acme")
            secret = await streams.service.store.blobs.put(b'"a secret of others"')
            streams.answer(task["token"], tenant="acme", result_ref=f"cas://sha256:{secret}")

            with pytest.raises(weft.RunFailed, match="names a blob that its run does not have"):
                await handle.result(timeout=20)

    asyncio.run(scenario())
