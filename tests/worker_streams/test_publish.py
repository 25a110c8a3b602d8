"""Tasks of a queue that is a stream are published for workers in any language, and their answers come back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import weft
from tests import servers
from tests.redis_server import shared_redis
from tests.worker_streams.kit import QUEUE, Streams, choir, hosted, until
from weft.ports.step_logs import LogQuery
from weft.ports.tasks import STREAM, QueueLimits
from weft.runtime.worker_streams.publish import INPUT_BYTES_MAX
from weft.runtime.worker_streams.tokens import TaskTicket
from weft.tokens import unpack


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        found = servers.database("streams")
        servers.empty(found)
        return found
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/weft.db"


async def start(streams: Streams, id: str = "r1", text: str = "hello") -> weft.Handle[Any]:
    return await streams.app.start("say", {"text": text}, id=id)


def life_s(token: str) -> int:
    """How long a token of an older key is valid."""
    ticket = unpack(token.partition(".")[2].partition(".")[0], TaskTicket)
    return ticket.until_s - ticket.issued_s


def test_a_token_of_a_task_without_a_timeout_is_valid_for_30_days() -> None:
    async def scenario() -> None:
        async with hosted(choir(timeout=0), shared_redis()) as streams:
            handle = await start(streams)
            (task,) = await streams.tasks()
            assert life_s(task["token"]) == 30 * 86_400
            await handle.cancel()

    asyncio.run(scenario())


def test_a_worker_gets_what_it_needs_and_its_answer_ends_the_run(url: str) -> None:
    async def scenario() -> None:
        async with hosted(choir(timeout="1m"), shared_redis(), url=url) as streams:
            handle = await start(streams)
            (task,) = await streams.tasks()
            assert {
                name: task[name] for name in ("run_id", "node_id", "step", "attempt", "timeout_ms", "lease_ms")
            } == {
                "run_id": "r1",
                "node_id": "shout",
                "step": "shout",
                "attempt": "1",
                "timeout_ms": "60000",
                "lease_ms": "30000",
            }
            assert json.loads(task["input"]) == {"text": "hello"}
            assert life_s(task["token"]) == 60
            assert task["key"].endswith("/shout")

            streams.answer(task["token"], result='"HELLO"')
            streams.forget(task)

            assert await handle.result(timeout=20) == "HELLO"
            await streams.is_empty()
            assert streams.counts["published"] == streams.counts["answered"] == 1
            assert streams.command("XPENDING", streams.name("wf.done"), "weft")[0] == 0

    asyncio.run(scenario())


def test_a_failure_is_retried_as_the_step_says_unless_the_worker_says_no() -> None:
    async def scenario() -> None:
        async with hosted(choir(retries=1), shared_redis()) as streams:
            handle = await start(streams)
            (first,) = await streams.tasks()
            streams.answer(first["token"], status="failed", error='{"type": "Hoarse", "message": "no voice"}')
            (second,) = await streams.tasks()
            assert (second["attempt"], second["key"]) == ("2", first["key"])
            final = {"type": "Hoarse", "message": "for ever", "retryable": False}
            streams.answer(second["token"], status="failed", error=json.dumps(final))

            with pytest.raises(weft.RunFailed, match="Hoarse: for ever"):
                await handle.result(timeout=20)

    asyncio.run(scenario())


def test_a_large_input_is_a_reference_and_so_may_be_a_result() -> None:
    async def scenario() -> None:
        async with hosted(choir(), shared_redis()) as streams:
            text = "x" * INPUT_BYTES_MAX
            handle = await start(streams, text=text)
            (task,) = await streams.tasks()
            assert "input" not in task
            digest = task["input_ref"].removeprefix("cas://sha256:")
            assert json.loads(await streams.service.store.blobs.get(digest)) == {"text": text}

            kept = await streams.service.store.blobs.put(b'"LARGE"')
            streams.answer(task["token"], result_ref=f"cas://sha256:{kept}")

            assert await handle.result(timeout=20) == "LARGE"

    asyncio.run(scenario())


def test_what_a_worker_says_beside_its_result_is_a_line_of_its_step() -> None:
    async def scenario() -> None:
        async with hosted(choir(), shared_redis()) as streams:
            handle = await start(streams)
            (task,) = await streams.tasks()
            streams.answer(task["token"], result='"HELLO"', metadata='{"gpu": 3}')
            await handle.result(timeout=20)

            row = await streams.service.row(handle.id)
            lines = await streams.service.store.step_logs.read(row.uid, LogQuery())
            assert [(line.place, line.source, line.text) for line in lines] == [("shout", "worker", '{"gpu":3}')]

    asyncio.run(scenario())


def test_limits_of_the_queue_hold_and_the_rest_waits_as_rows() -> None:
    async def scenario() -> None:
        async with hosted(choir(), shared_redis()) as streams:
            await streams.service.store.tasks.limit(QUEUE, QueueLimits(stream=True, concurrency=2))
            handles = [await start(streams, f"r{n}", f"t{n}") for n in range(3)]
            first = await streams.tasks(2)
            (row,) = [row for row in await streams.service.store.tasks.queues() if row.queue == QUEUE]
            assert (row.running, row.waiting) == (2, 1)

            for task in first:
                streams.answer(task["token"], result=json.dumps(task["run_id"]))
            (third,) = await streams.tasks()
            streams.answer(third["token"], result=json.dumps(third["run_id"]))

            assert [await handle.result(timeout=20) for handle in handles] == ["r0", "r1", "r2"]

    asyncio.run(scenario())


def test_a_queue_that_is_no_stream_any_more_is_performed_by_hosts_again() -> None:
    app = weft.App("memory://")

    @app.step(queue=QUEUE)
    async def shout(text: str) -> str:
        return f"{text} here"

    @app.workflow
    async def say(ctx: weft.Context, text: str) -> str:
        return await shout(text)

    async def scenario() -> None:
        async with hosted(app, shared_redis()) as streams:
            out = await start(streams, "out")
            (task,) = await streams.tasks()
            await streams.service.store.tasks.limit(QUEUE, None)
            await until(lambda: not streams.host.shared.stream_queues())

            assert await (await start(streams, "local")).result(timeout=20) == "hello here"
            streams.answer(task["token"], result='"elsewhere"')
            assert await out.result(timeout=20) == "elsewhere"

    asyncio.run(scenario())


def test_a_task_that_is_no_longer_wanted_leaves_the_stream() -> None:
    async def scenario() -> None:
        async with hosted(choir(), shared_redis(), lease=0.3) as streams:
            handle = await start(streams)
            await until(lambda: streams.length(f"wf.tasks.{QUEUE}") == 1)
            await handle.cancel()

            await streams.is_empty()
            await until(lambda: streams.counts["withdrawn"] == 1)
            assert await streams.service.store.tasks.taken_by([STREAM], limit=10) == []

    asyncio.run(scenario())


def test_the_streams_of_a_tenant_have_its_prefix() -> None:
    async def scenario() -> None:
        async with hosted(choir(), shared_redis()) as streams:
            handle = await streams.app.start("say", {"text": "hello"}, id="@acme/r1")
            (task,) = await streams.tasks(tenant="acme")
            assert task["run_id"] == "r1"
            assert streams.read() == []
            assert streams.command("SMEMBERS", streams.name("wf.streams")) == [task["stream"]], "other hosts look there"
            streams.answer(task["token"], tenant="acme", result='"HELLO"')

            assert await handle.result(timeout=20) == "HELLO"

    asyncio.run(scenario())


def test_a_second_deployment_under_the_same_prefix_is_refused() -> None:
    async def scenario() -> None:
        async with hosted(choir(), shared_redis()) as first:
            await until(lambda: bool(first.command("EXISTS", first.name("wf.owner"))))
            async with hosted(choir(), shared_redis(), prefix=first.prefix) as second:
                await start(second)
                counts = second.host.worker_streams.counts
                assert counts is not None
                await until(lambda: "belong to another deployment" in counts.trouble)
                assert "Set another WEFT_REDIS_PREFIX" in counts.trouble
                assert first.length(f"wf.tasks.{QUEUE}") == 0

    asyncio.run(scenario())
