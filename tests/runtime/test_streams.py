"""Output streams: what steps and workflows emit is kept in order, before the result, and once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.core.ids import Millis, RunId, RunUid
from weft.ports.streams import Chunk, NewChunk
from weft.runtime.streams import WAITING_BYTES_MAX
from weft.stores.memory.log import MemoryLog

app = weft.App("memory://")
tries: list[int] = []


@app.step
async def speak(words: list[str]) -> int:
    for word in words:
        weft.task().emit("tokens", word)
    return len(words)


@app.step
def count_in_threads(n: int) -> None:
    task = weft.task()
    threads = [threading.Thread(target=lambda: [task.emit("numbers", i) for i in range(n)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@app.step(retries=weft.Retry(attempts=2, delay="1ms"))
async def stumble() -> None:
    attempt = weft.task().attempt
    weft.task().emit("tokens", f"attempt {attempt}")
    if attempt == 1:
        raise OSError("once")


@app.step
async def emit_anything(chunk: Any, stream: str = "tokens") -> None:
    weft.task().emit(stream, chunk)


@app.step
async def flood() -> str:
    piece = "x" * 60_000
    try:
        for _ in range(WAITING_BYTES_MAX // 60_000 + 10):
            weft.task().emit("tokens", piece)
    except weft.LimitExceeded as error:
        return str(error)
    return "taken"


@app.workflow
async def talk(ctx: weft.Context, words: list[str]) -> int:
    await ctx.emit("tokens", "first")
    spoken = await speak(words)
    await ctx.emit("tokens", {"spoken": spoken})
    await ctx.emit("tokens", {"spoken": spoken})
    return spoken


@app.workflow
async def threads(ctx: weft.Context, n: int) -> None:
    await count_in_threads(n)


@app.workflow
async def stumbling(ctx: weft.Context) -> None:
    await stumble()


@app.workflow
async def emitting(ctx: weft.Context, chunk: Any, stream: str = "tokens") -> None:
    await emit_anything(chunk, stream)


@app.workflow
async def flooding(ctx: weft.Context) -> str:
    return await flood()


@app.workflow
async def patient(ctx: weft.Context) -> str:
    await ctx.emit("tokens", "before")
    body = await ctx.receive("go", str)
    await ctx.emit("tokens", body)
    return body


async def chunks(run_id: str, stream: str = "tokens") -> list[Chunk]:
    row = await app.service.row(RunId(run_id))
    return list(await app.service.store.streams.read(row.uid, stream, after=0, limit=10_000))


def played(call: Any, stream: str = "tokens") -> tuple[Any, list[Chunk]]:
    async def play() -> tuple[Any, list[Chunk]]:
        async with app:
            handle = await app.start(call)
            result = await handle.result(timeout=120)
            assert app.service.streams is not None
            await app.service.streams.flush()
            return result, await chunks(handle.id, stream)

    return asyncio.run(play())


def bodies(found: list[Chunk]) -> list[bytes]:
    return [chunk.body for chunk in found]


def test_a_run_has_what_its_code_and_its_steps_emitted_in_order() -> None:
    result, found = played(talk(["a", "b"]))

    assert result == 2
    assert bodies(found) == [b'"first"', b'"a"', b'"b"', b'{"spoken":2}', b'{"spoken":2}']
    assert [(chunk.by, chunk.attempt) for chunk in found[:3]] == [("", 0), ("speak", 1), ("speak", 1)]
    assert [chunk.offset for chunk in found] == [1, 2, 3, 4, 5]


def test_threads_of_a_step_lose_nothing() -> None:
    _, found = played(threads(200), "numbers")

    assert len(found) == 800
    assert sorted(bodies(found)) == sorted(b"%d" % n for n in range(200) for _ in range(4))


def test_an_attempt_that_is_repeated_writes_under_its_own_number() -> None:
    _, found = played(stumbling())

    assert [(chunk.body, chunk.attempt) for chunk in found] == [(b'"attempt 1"', 1), (b'"attempt 2"', 2)]


def test_what_a_step_emitted_is_stored_before_its_result() -> None:
    async def play() -> None:
        async with app:
            handle = await app.start(talk([str(n) for n in range(50)]))
            async for event in handle.events(follow=True):
                if event.kind == "task_succeeded":
                    assert len(await chunks(handle.id)) >= 51
                    return

    asyncio.run(play())


def test_the_last_words_of_a_workflow_are_stored_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is killed right after the end of a run must not have lost them: no replay would say them again."""
    stored: list[list[bytes]] = []
    commit = MemoryLog.commit

    async def watched(self: Any, appends: Any, host: Any) -> Any:
        for append in appends:
            if append.status == "completed":
                found = await app.service.store.streams.read(append.uid, "tokens", after=0, limit=100)
                stored.append(bodies(list(found)))
        return await commit(self, appends, host)

    monkeypatch.setattr(MemoryLog, "commit", watched)
    _, found = played(talk(["a"]))

    assert stored == [bodies(found)]
    assert stored[0][-1] == b'{"spoken":1}'


@pytest.mark.parametrize(
    ("chunk", "stream", "complaint"),
    [
        ({1, 2}, "tokens", "cannot be stored"),
        ("x" * 70_000, "tokens", "the limit is 65,536"),
        ("x", "a/b", "is not a valid name"),
    ],
)
def test_what_cannot_be_kept_fails_the_step(chunk: Any, stream: str, complaint: str) -> None:
    given = "set" if isinstance(chunk, set) else chunk

    async def play() -> None:
        async with app:
            handle = await app.start(emitting(given, stream) if given != "set" else bad_chunk())
            with pytest.raises(weft.RunFailed, match=complaint):
                await handle.result(timeout=120)

    asyncio.run(play())


@app.step
async def emit_a_set() -> None:
    weft.task().emit("tokens", {1, 2})


@app.workflow
async def bad_chunk(ctx: weft.Context) -> None:
    await emit_a_set()


def test_code_on_the_loop_that_never_lets_go_is_refused_before_memory_is_full() -> None:
    result, _ = played(flooding())

    assert "grows faster than the store can write it" in result


def test_what_is_in_the_log_is_dropped_if_the_store_cannot_follow() -> None:
    async def play() -> None:
        async with app:
            streams = app.service.streams
            assert streams is not None
            for n in range(WAITING_BYTES_MAX // 60_000 + 10):
                chunk = NewChunk(uid=RunUid("u"), stream="s", key=str(n), body=b"x" * 60_000, at=Millis(0))
                streams.emit_if_room(chunk)
            with pytest.raises(weft.LimitExceeded):
                streams.emit(chunk)

    asyncio.run(play())


def test_a_workflow_that_is_read_back_writes_nothing_twice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def until_waiting() -> None:
        async with app:
            handle = await app.start(patient(), id="p")
            async for event in handle.events(follow=True):
                if event.kind == "message_awaited":
                    return

    async def go_on() -> list[Chunk]:
        async with app:
            handle = app.get("p")
            await handle.send("go", "on")
            assert await handle.result(timeout=120) == "on"
            assert app.service.streams is not None
            await app.service.streams.flush()
            return await chunks("p")

    app.url = url
    try:
        asyncio.run(until_waiting())
        assert bodies(asyncio.run(go_on())) == [b'"before"', b'"on"']
    finally:
        app.url = "memory://"


def test_outside_a_step_there_is_nothing_to_emit_to() -> None:
    with pytest.raises(weft.NoContext):
        weft.task().emit("tokens", "x")
