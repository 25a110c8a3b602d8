"""Whoever may write on one stream can neither fill the memory of a host nor stop the streams of others."""

from __future__ import annotations

import asyncio

import pytest

from tests.redis_server import shared_redis
from tests.worker_streams.kit import QUEUE, as_json, choir, hosted, new_prefix, until
from weft.ports.worker_streams import ENTRY_BYTES_MAX
from weft.runtime.worker_streams.counts import StreamCounts
from weft.stores.redis import streams as redis_streams
from weft.stores.redis.streams import RedisStreams

SHORT = 0.5
HUGE = "x" * (ENTRY_BYTES_MAX + 1)


def test_a_huge_answer_fails_its_attempt_and_is_named_and_removed() -> None:
    async def play() -> None:
        async with hosted(choir(retries=1), shared_redis()) as streams:
            handle = await streams.app.start("say", {"text": "hello"}, id="r1")
            (first,) = await streams.tasks()
            streams.answer(first["token"], result=HUGE)
            streams.forget(first)
            (second,) = await streams.tasks()
            streams.answer(second["token"], result='"HELLO"')
            streams.forget(second)
            assert await handle.result(timeout=20) == "HELLO"
            await streams.is_empty()
            (bad,) = streams.bad()
            assert "the limit is 33,554,432" in bad["why"]
            assert int(bad["bytes"]) > ENTRY_BYTES_MAX
            assert bad["token"] == first["token"]
            assert "result" not in bad
            assert (streams.counts["bad"], streams.counts["answered"]) == (1, 2)

    asyncio.run(play())


def test_a_huge_answer_without_a_valid_token_is_removed() -> None:
    async def play() -> None:
        async with hosted(choir(), shared_redis()) as streams:
            handle = await streams.app.start("say", {"text": "hello"}, id="r1")
            (task,) = await streams.tasks()
            streams.answer(task["token"] + HUGE)
            streams.answer(task["token"], result='"HELLO"')
            assert await handle.result(timeout=20) == "HELLO"
            (bad,) = streams.bad()
            assert "no valid token" in bad["why"]
            assert len(bad["token"]) < 5_000

    asyncio.run(play())


async def filled(key: str, *sizes: int) -> RedisStreams:
    server = RedisStreams(shared_redis().url)
    await server.prepare([key])
    for size in sizes:
        shared_redis().command("XADD", key, "*", "token", "t", "result", "x" * size)
    return server


def test_only_as_many_answers_are_read_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_streams, "ROOM_BYTES", 5_000)
    key = f"{new_prefix()}wf.done"

    async def play() -> None:
        server = await filled(key, *[2_000] * 6)
        try:
            first = await server.read([key], count=100, wait_ms=1)
            assert len(first) == 3, "the room is full after the third"
            taken = await server.claim_idle(key, idle_ms=0, count=100)
            assert [entry.id for entry in taken] == [entry.id for entry in first]
            assert len(await server.read([key], count=100, wait_ms=1)) == 3
            assert len(await server.claim_idle(key, idle_ms=0, count=100)) == 3
            idle = shared_redis().command("XPENDING", key, "weft", "-", "+", 10)
            assert len(idle) == 6, "what there was no room for is still to be claimed"
        finally:
            await server.close()

    asyncio.run(play())


def test_what_there_was_no_room_for_can_be_claimed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    key = f"{new_prefix()}wf.done"
    hour_ms = 3_600_000

    async def play() -> None:
        server = await filled(key, *[2_000] * 6)
        try:
            for entry in await server.read([key], count=100, wait_ms=1):
                shared_redis().command("XCLAIM", key, "weft", "weft", 0, entry.id, "IDLE", 2 * hour_ms, "JUSTID")
            monkeypatch.setattr(redis_streams, "ROOM_BYTES", 5_000)
            sizes = [len(await server.claim_idle(key, idle_ms=hour_ms, count=100)) for _ in range(3)]
            assert sizes == [3, 3, 0]
        finally:
            await server.close()

    asyncio.run(play())


def test_the_streams_take_turns() -> None:
    loud, quiet = (f"{new_prefix()}wf.done" for _ in range(2))

    async def play() -> None:
        server = await filled(loud, *[1] * 20)
        try:
            await (await filled(quiet, 1)).close()
            read = await server.read([loud, quiet], count=4, wait_ms=1)
            assert [entry.stream for entry in read].count(quiet) == 1
            assert len(read) == 4
        finally:
            await server.close()

    asyncio.run(play())


def test_a_host_that_waits_does_not_read_a_huge_answer_to_see_that_it_is_there() -> None:
    key = f"{new_prefix()}wf.done"

    async def play() -> None:
        server = await filled(key)
        try:
            waiting = asyncio.create_task(server.read([key], count=1, wait_ms=20_000))
            while not shared_redis().command("CLIENT", "LIST").count("cmd=xread"):
                await asyncio.sleep(0.01)
            shared_redis().command("XADD", key, "*", "token", "t", "result", HUGE)
            (entry,) = await waiting
            assert entry.fields == {b"token": b"t"}
            assert entry.size > ENTRY_BYTES_MAX
            reader = server._waiting.connection_pool  # it gave its connection up
            assert not any(one.is_connected for one in reader._available_connections)
        finally:
            await server.close()

    asyncio.run(play())


@pytest.mark.parametrize("name", ["wf.done", f"wf.tasks.{QUEUE}"])
def test_a_key_of_another_type_stops_only_its_own_stream(name: str) -> None:
    async def play() -> None:
        async with hosted(choir(), shared_redis(), lease=SHORT) as streams:
            broken = streams.name(f"t:zeta:{name}")
            theirs = await streams.app.start("say", {"text": "a"}, id="@zeta/r1")
            await streams.tasks(tenant="zeta")
            streams.command("DEL", broken)
            streams.command("SET", broken, "no stream")

            ours = await streams.app.start("say", {"text": "b"}, id="r1")
            (task,) = await streams.tasks()
            streams.command("DEL", task["stream"])  # the keeper has to work: it publishes the task again
            (again,) = await streams.tasks()
            streams.answer(again["token"], result='"B"')
            assert await ours.result(timeout=20) == "B"
            counts = streams.host.worker_streams.counts
            assert counts is not None
            await until(lambda: broken in counts.problem)
            assert counts.trouble == ""

            streams.command("DEL", broken)
            await until(lambda: counts.problem == "")
            (later,) = await streams.tasks(tenant="zeta")
            streams.answer(later["token"], tenant="zeta", result=as_json("A"))
            streams.forget(later)
            assert await theirs.result(timeout=20) == "A"

    asyncio.run(play())


def test_the_names_of_keys_in_the_way_are_shown_and_not_all_of_them() -> None:
    counts = StreamCounts(others={f"t:{name}:wf.done" for name in "abcde"})
    assert counts.problem == (
        "In Redis, t:a:wf.done, t:b:wf.done, t:c:wf.done and 2 more should be streams and hold something else. "
        "Delete these keys."
    )
