"""A resource that never comes to an end does not keep its host from ending."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from tests.code.timeless import TimelessLoop
from weft.authoring.open_resources import CLOSE_SECONDS, SLOW_SECONDS, OpenResources
from weft.authoring.resources import ResourceTable
from weft.errors import ResourceFailed
from weft.steps.signature import Injected


async def wait_for(event: asyncio.Event, *, is_stubborn: bool) -> None:
    while not event.is_set():
        try:
            await event.wait()
        except asyncio.CancelledError:
            if not is_stubborn:
                raise


@pytest.mark.parametrize("is_stubborn", [False, True], ids=["waits", "ignores its cancellation"])
def test_a_resource_that_does_not_close_is_given_up_and_the_others_are_closed(
    caplog: pytest.LogCaptureFixture, *, is_stubborn: bool
) -> None:
    table, closed = ResourceTable(), list[str]()

    async def play() -> None:
        leave = asyncio.Event()

        @table.register
        async def database() -> AsyncIterator[int]:
            yield 1
            closed.append("database")

        @table.register
        async def stuck(database: int) -> AsyncIterator[str]:
            yield "open"
            await wait_for(leave, is_stubborn=is_stubborn)

        resources = OpenResources(table)
        await resources.start({"step": [Injected("stuck", str)]})
        await resources.close()
        leave.set()

    with caplog.at_level(logging.ERROR, "weft"), asyncio.Runner(loop_factory=TimelessLoop) as runner:
        runner.run(play())
    assert closed == ["database"]
    assert f"the resource stuck did not close within {CLOSE_SECONDS:.0f} s" in caplog.text


def test_a_resource_that_does_not_stop_to_open_is_given_up() -> None:
    async def play() -> None:
        leave, table = asyncio.Event(), ResourceTable()

        @table.register
        async def stuck() -> AsyncIterator[str]:
            await wait_for(leave, is_stubborn=True)
            yield "open"

        resources = OpenResources(table)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(resources.start({"step": [Injected("stuck", str)]}), 5)
        leave.set()

    with asyncio.Runner(loop_factory=TimelessLoop) as runner:
        runner.run(play())


def test_a_resource_that_raises_what_a_dropped_coroutine_gets_fails_to_open() -> None:
    async def play() -> None:
        table = ResourceTable()

        @table.register
        async def odd() -> AsyncIterator[str]:
            raise GeneratorExit
            yield "open"

        with pytest.raises(ResourceFailed, match="GeneratorExit"):
            await asyncio.wait_for(OpenResources(table).start({"step": [Injected("odd", str)]}), 5)

    with asyncio.Runner(loop_factory=TimelessLoop) as runner:
        runner.run(play())


def test_a_host_says_that_it_waits_for_a_resource(caplog: pytest.LogCaptureFixture) -> None:
    table = ResourceTable()

    @table.register
    async def quick() -> AsyncIterator[int]:
        yield 1

    @table.register
    async def slow(quick: int) -> AsyncIterator[str]:
        await asyncio.sleep(SLOW_SECONDS + 1)
        yield "open"

    async def play() -> None:
        resources = OpenResources(table)
        await resources.start({"step": [Injected("slow", str)]})
        await resources.close()

    with caplog.at_level(logging.WARNING, "weft"), asyncio.Runner(loop_factory=TimelessLoop) as runner:
        runner.run(play())
    said = [record.getMessage() for record in caplog.records if "waits for the resource" in record.getMessage()]
    assert [text.split(",")[0] for text in said] == ["weft: the host waits for the resource slow"]
