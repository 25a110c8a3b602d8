"""Waiting for a store: as long as it answers somebody."""

import asyncio
import gc
import time
import weakref
from typing import Any

import msgspec
import pytest

import weft
from tests.code.timeless import TimelessLoop, play
from weft.authoring.handles import Handle
from weft.core import commands as c
from weft.core.ids import RunId
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService
from weft.runtime.start_support import StartOptions
from weft.runtime.store_timeout import RECHECK_SECONDS, START_SECONDS, StoreTimeout
from weft.steps.codec import Codec
from weft.stores.memory import MemoryStore


def test_a_store_that_answers_nobody_is_given_up() -> None:
    async def scene() -> None:
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await StoreTimeout(lambda: began - 1).wait_for(asyncio.sleep(100))
        assert asyncio.get_running_loop().time() - began == pytest.approx(START_SECONDS + RECHECK_SECONDS)

    play(scene())


def test_a_store_that_answers_others_is_waited_for() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        await StoreTimeout(lambda: loop.time() - 1).wait_for(asyncio.sleep(100))

    play(scene())


def test_each_wait_ends_by_itself_and_the_last_answer_counts() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        answered = [began - 1]
        patience = StoreTimeout(lambda: answered[0])
        ended: dict[str, float] = {}

        async def one(name: str, delay: float) -> None:
            await asyncio.sleep(delay)
            with pytest.raises(TimeoutError):
                await patience.wait_for(asyncio.sleep(100))
            ended[name] = loop.time() - began

        waits = [asyncio.create_task(one("first", 0)), asyncio.create_task(one("second", 1))]
        await asyncio.sleep(0.5)
        answered[0] = loop.time()
        await asyncio.gather(*waits)
        assert ended == {
            "first": pytest.approx(START_SECONDS + RECHECK_SECONDS + 0.5),
            "second": pytest.approx(START_SECONDS + 1),
        }
        # Nobody waited for a while: the next one is looked after as well.
        begun = loop.time()
        await one("third", 50)
        assert loop.time() - begun == pytest.approx(50 + START_SECONDS + RECHECK_SECONDS)

    play(scene())


def test_a_loop_that_was_busy_hears_its_answers_first() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, TimelessLoop)
        answered = [loop.time()]
        waiting = asyncio.create_task(StoreTimeout(lambda: answered[0]).wait_for(asyncio.sleep(9)))
        await asyncio.sleep(0)
        loop.jump(START_SECONDS + 2)
        loop.call_later(0.5, answered.__setitem__, 0, loop.time())
        await waiting

    play(scene())


def test_a_wait_that_is_cancelled_is_no_timeout() -> None:
    async def scene() -> None:
        waiting = asyncio.create_task(StoreTimeout(lambda: 0.0).wait_for(asyncio.sleep(100)))
        await asyncio.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    play(scene())


def test_a_wait_that_is_over_keeps_nothing_alive() -> None:
    async def scene() -> bool:
        patience = StoreTimeout(lambda: 0.0)
        gc.disable()
        try:
            task = asyncio.create_task(patience.wait_for(asyncio.sleep(0)))
            await task
            seen = weakref.ref(task)
            del task
            await asyncio.sleep(0)
            return seen() is None
        finally:
            gc.enable()

    assert play(scene())


def test_a_workflow_that_blocks_the_loop_is_not_taken_for_a_store_that_is_away() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def blocking() -> int:
        time.sleep(START_SECONDS + 0.1)
        return 3

    async def scene() -> int:
        async with app:
            return await (await app.start(blocking())).result()

    assert asyncio.run(scene()) == 3


@pytest.mark.parametrize("command", ["send", "cancel", "request"])
def test_a_command_through_a_store_that_is_silent_is_given_up_and_its_key_makes_it_count_once(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> list[object]:
        store = MemoryStore()
        await store.open()
        service = RunService(store, SystemClock(), TimeIds())
        await service.create(
            c.StartRun(run_id="run", workflow="flow", input=msgspec.Raw(b"{}")), StartOptions(chosen=True)
        )
        handle = Handle(service, RunId("run"), Codec.of(Any))
        with monkeypatch.context() as silent:
            for name in ("send", "claim"):
                silent.setattr(store.log, name, lambda *_, **__: asyncio.sleep(1_000))
            began = asyncio.get_running_loop().time()
            with pytest.raises(weft.Unavailable, match="may or may not have received this"):
                await told(handle)
            assert asyncio.get_running_loop().time() - began < 5
        if command == "send":
            await told(handle)
            await told(handle)
        return [mail.key for mail in await store.log.inbox((await service.row(RunId("run"))).uid)]

    async def told(handle: Handle[Any]) -> None:
        match command:
            case "send":
                await handle.send("note", 1, key="one")
            case "request":
                await handle.request("note", 1)
            case _:
                await handle.cancel()

    assert play(scene()).count("one") == (command == "send")
