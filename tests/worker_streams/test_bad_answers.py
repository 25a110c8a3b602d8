"""Anybody who can reach Redis can write answers. A bad one changes nothing, or fails only its own attempt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

import weft
from tests.redis_server import shared_redis
from tests.worker_streams.kit import QUEUE, Streams, choir, hosted, until
from weft.runtime.worker_streams.answers import METADATA_BYTES_MAX
from weft.runtime.worker_streams.done import BAD_KEPT

SHORT = 0.5
UNREADABLE: dict[str, Mapping[str, Any]] = {
    "no status": {"status": ""},
    "another status": {"status": "maybe"},
    "status in bytes": {"status": b"\xff\xfe"},
    "no JSON": {"result": "HELLO"},
    "half a document": {"result": '{"a": '},
    "bytes": {"result": b'"\xff"'},
    "half a character": {"result": '"\\ud800"'},
    "no number": {"result": "NaN"},
    "an endless number": {"result": "1e999"},
    "a very long number": {"result": "1" * 5_000},
    "a deep document": {"result": "[" * 50_000 + "]" * 50_000},
    "no reference": {"result_ref": "cas://sha256:../../etc/passwd"},
    "a blob that is not there": {"result_ref": f"cas://sha256:{'0' * 64}"},
    "no error": {"status": "failed"},
    "an error of another shape": {"status": "failed", "error": '["no"]'},
    "an error that says yes or no in words": {
        "status": "failed",
        "error": '{"type": "E", "message": "m", "retryable": "no"}',
    },
    "an error with a deep document": {
        "status": "failed",
        "error": f'{{"message": "m", "more": {"[" * 5_000}{"]" * 5_000}}}',
    },
    "an error with half a character": {"status": "failed", "error": '{"type": "E", "message": "\\udc00"}'},
    "metadata that is no JSON": {"result": "1", "metadata": "{"},
    "too much metadata": {"result": "1", "metadata": json.dumps("x" * METADATA_BYTES_MAX)},
}
UNKNOWN: dict[str, Callable[[str], str | bytes]] = {
    "empty": lambda _: "",
    "bytes": lambda _: b"\xff\xfe\x00",
    "forged": lambda token: token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB"),
    "cut": lambda token: token[: len(token) // 2],
    "of a key that never was": lambda token: f"999999.{token.partition('.')[2]}",
    "of a later key": lambda token: f"{int(token.partition('.')[0]) + 1}.{token.partition('.')[2]}",
    "huge": lambda token: token + "A" * 1_000_000,
    "only dots": lambda _: "....",
}


async def start(streams: Streams, id: str = "r1") -> weft.Handle[Any]:
    return await streams.app.start("say", {"text": "hello"}, id=id)


def play(scenario: Callable[[Streams], Awaitable[None]], *, lease: float = 30.0, **options: Any) -> None:
    """Play a scene with one host, whose loops must be well at its end."""

    async def whole() -> None:
        async with hosted(choir(**options), shared_redis(), lease=lease) as streams:
            await scenario(streams)
            assert streams.host.worker_streams.counts is not None
            assert streams.host.worker_streams.counts.trouble == ""

    asyncio.run(whole())


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_answer_whose_token_is_not_ours_is_set_aside_and_the_task_goes_on(name: str) -> None:
    async def scenario(streams: Streams) -> None:
        handle = await start(streams)
        (task,) = await streams.tasks()
        streams.answer(UNKNOWN[name](task["token"]), result='"EVIL"')
        await until(lambda: streams.counts["bad"] == 1)
        assert streams.counts["answered"] == 0

        streams.answer(task["token"], result='"HELLO"')
        assert await handle.result(timeout=20) == "HELLO"
        (bad,) = streams.bad()
        assert bad["code"] == "stream.bad_answer"
        assert bad["stream"] == streams.name("wf.done")
        assert "token" in bad["why"]

    play(scenario)


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_answer_that_cannot_be_read_fails_its_attempt(name: str) -> None:
    async def scenario(streams: Streams) -> None:
        handle = await start(streams)
        (first,) = await streams.tasks()
        streams.answer(first["token"], **UNREADABLE[name])
        streams.forget(first)
        (second,) = await streams.tasks()
        assert (second["attempt"], second["key"]) == ("2", first["key"])
        assert streams.counts["bad"] == 1
        (bad,) = streams.bad()
        assert bad["task"].isdigit()
        assert bad["token"] == first["token"]

        streams.answer(second["token"], result='"HELLO"')
        assert await handle.result(timeout=20) == "HELLO"

    play(scenario, retries=1)


def test_the_last_attempt_that_is_answered_unreadably_fails_the_run() -> None:
    async def scenario(streams: Streams) -> None:
        handle = await start(streams)
        (task,) = await streams.tasks()
        streams.answer(task["token"], result="HELLO")
        with pytest.raises(weft.RunFailed, match="BadAnswer: The result of an answer cannot be used"):
            await handle.result(timeout=20)

    play(scenario, retries=0)


def test_the_second_answer_to_a_task_is_dropped() -> None:
    async def scenario(streams: Streams) -> None:
        handle = await start(streams)
        (task,) = await streams.tasks()
        for result in ('"HELLO"', '"AGAIN"'):
            streams.answer(task["token"], result=result)
        await until(lambda: streams.counts["old"] == 1)
        assert await handle.result(timeout=20) == "HELLO"
        assert streams.counts["answered"] == 1
        assert streams.bad() == []

    play(scenario)


def test_the_answer_of_a_worker_that_was_taken_for_dead_is_dropped() -> None:
    async def scenario(streams: Streams) -> None:
        handle = await start(streams)
        (late,) = await streams.tasks(worker="slow")
        (task,) = await streams.tasks(worker="quick")
        assert task["key"] == late["key"]
        assert task["token"] != late["token"]
        streams.answer(late["token"], result='"LATE"')
        await until(lambda: streams.counts["old"] == 1)

        streams.answer(task["token"], result='"HELLO"')
        assert await handle.result(timeout=20) == "HELLO"
        assert (streams.counts["answered"], streams.counts["lost"]) == (1, 1)

    play(scenario, lease=SHORT)


def test_an_answer_to_a_run_that_was_cancelled_is_dropped() -> None:
    async def scenario(streams: Streams) -> None:
        handle = await start(streams)
        (task,) = await streams.tasks()
        await handle.cancel()
        with pytest.raises(weft.RunCancelled):
            await handle.result(timeout=20)
        streams.answer(task["token"], result='"LATE"')
        await until(lambda: streams.counts["old"] == 1)
        await streams.is_empty()

    play(scenario, lease=SHORT)


def test_a_token_of_another_deployment_counts_for_nothing() -> None:
    async def scenario(streams: Streams) -> None:
        handle = await start(streams)
        (task,) = await streams.tasks()
        async with hosted(choir(), shared_redis()) as stranger:
            await start(stranger)
            (theirs,) = await stranger.tasks()
            streams.answer(theirs["token"], result='"EVIL"')
            await until(lambda: streams.counts["bad"] == 1)
        streams.answer(task["token"], result='"HELLO"')
        assert await handle.result(timeout=20) == "HELLO"

    play(scenario)


@pytest.mark.parametrize(("owner", "writer"), [("acme", ""), ("", "acme"), ("acme", "zeta")])
def test_a_token_is_taken_only_from_the_stream_of_its_own_tenant(owner: str, writer: str) -> None:
    async def scenario(streams: Streams) -> None:
        ids = {name: f"@{name}/r1" if name else "r1" for name in (owner, writer)}
        handles = {name: await start(streams, run) for name, run in ids.items()}
        (task,) = await streams.tasks(tenant=owner)
        (other,) = await streams.tasks(tenant=writer)
        streams.answer(task["token"], tenant=writer, result='"EVIL"')
        await until(lambda: streams.counts["bad"] == 1)
        (bad,) = streams.bad()
        assert bad["token"] == task["token"]
        assert "task" not in bad

        streams.answer(task["token"], tenant=owner, result='"HELLO"')
        streams.answer(other["token"], tenant=writer, result='"HELLO"')
        assert [await handle.result(timeout=20) for handle in handles.values()] == ["HELLO", "HELLO"]
        assert streams.counts["answered"] == 2

    play(scenario)


def test_only_the_newest_bad_answers_are_kept() -> None:
    async def scenario(streams: Streams) -> None:
        handle = await start(streams)
        (task,) = await streams.tasks()
        add = "for n = 1, tonumber(ARGV[1]) do redis.call('XADD', KEYS[1], '*', 'token', 'x', 'n', n) end"
        streams.command("EVAL", add, 1, streams.name("wf.done"), BAD_KEPT + 5)
        streams.answer(task["token"], result='"HELLO"')
        assert await handle.result(timeout=20) == "HELLO"
        await until(lambda: streams.counts["bad"] == BAD_KEPT + 5)
        assert len(streams.bad()) == BAD_KEPT

    play(scenario)


def test_strange_entries_among_the_tasks_stop_nobody() -> None:
    async def scenario(streams: Streams) -> None:
        handle = await start(streams)
        (task,) = await streams.tasks()
        for token in ("", "x", "1.e30=.x", b"\xff"):
            streams.command("XADD", task["stream"], "*", "token", token)
        streams.read(worker="gone")
        # A lease later, the strange entries are gone, and the task is published again.
        (again,) = await streams.tasks()
        streams.answer(again["token"], result='"HELLO"')
        streams.forget(again)
        assert await handle.result(timeout=20) == "HELLO"
        await until(lambda: streams.length(f"wf.tasks.{QUEUE}") == 0)

    play(scenario, lease=SHORT)
