"""Coroutines that begin at once behave as they would in a task of their own."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from weft.runtime.worker.eager import EagerStart

SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="nothing")

Play = Callable[[Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None] | None"]], Coroutine[Any, Any, None]]


def play(scene: Play) -> None:
    """Play a scene with a function that begins a coroutine at once."""

    async def main() -> None:
        eager, loop = EagerStart(), asyncio.get_running_loop()

        async def nothing() -> None:
            pass

        def begin(body: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
            context, task = contextvars.Context(), eager.spare(loop)
            if task is None:
                return loop.create_task(body, context=context)
            return task if eager.begin(loop, body, context) else None

        first = begin(nothing())
        assert first is not None, "there is no spare task yet"
        await first
        await scene(begin)
        await eager.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_what_never_waits_ends_at_once_and_needs_no_task() -> None:
    async def scene(begin: Any) -> None:
        ended: list[str] = []

        async def body(name: str) -> None:
            ended.append(name)

        outer, tasks = asyncio.current_task(), asyncio.all_tasks()
        assert begin(body("a")) is None
        assert begin(body("b")) is None
        assert ended == ["a", "b"]
        assert asyncio.all_tasks() == tasks
        assert asyncio.current_task() is outer

    play(scene)


def test_the_current_task_is_the_same_before_and_after_waiting() -> None:
    async def scene(begin: Any) -> None:
        seen: list[Any] = []

        async def body() -> None:
            seen.append(asyncio.current_task())
            await asyncio.sleep(0)
            seen.append(asyncio.current_task())
            await asyncio.sleep(0.001)
            seen.append(asyncio.current_task())

        task = begin(body())
        await task
        assert seen == [task] * 3

    play(scene)


def test_context_variables_hold_after_waiting_and_are_not_seen_by_others() -> None:
    async def scene(begin: Any) -> None:
        seen: list[str] = []

        async def body() -> None:
            seen.append(SEEN.get())
            SEEN.set("something")
            await asyncio.sleep(0)
            seen.append(SEEN.get())

        for _ in range(2):
            await begin(body())
            await asyncio.sleep(0)
            begin(asyncio.sleep(0))  # makes the next spare task
            await asyncio.sleep(0)
        assert seen == ["nothing", "something"] * 2
        assert SEEN.get() == "nothing"

    play(scene)


def test_a_timeout_of_the_first_line_holds() -> None:
    async def scene(begin: Any) -> None:
        seen: list[str] = []

        async def body() -> None:
            try:
                async with asyncio.timeout(0.001):
                    await asyncio.sleep(3600)
            except TimeoutError:
                seen.append("late")

        task = begin(body())
        await task
        assert seen == ["late"]
        assert task.cancelling() == 0

    play(scene)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_cancellation_reaches_what_the_coroutine_waits_for(turns: int) -> None:
    async def scene(begin: Any) -> None:
        inner: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        seen: list[str] = []

        async def body() -> None:
            try:
                await inner
            except asyncio.CancelledError:
                seen.append("cancelled")
                await asyncio.sleep(0)
                seen.append("cleaned up")
                raise

        task = begin(body())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert inner.cancelled()
        assert seen == ["cancelled", "cleaned up"]

    play(scene)


def test_a_cancellation_comes_although_what_was_waited_for_is_there() -> None:
    async def scene(begin: Any) -> None:
        inner: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def body() -> None:
            await inner
            raise AssertionError("it was cancelled")

        task = begin(body())
        inner.set_result(None)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(scene)


def test_a_coroutine_may_cancel_its_own_task() -> None:
    async def scene(begin: Any) -> None:
        async def body() -> None:
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            await asyncio.sleep(3600)

        async def ends_at_once() -> None:
            current = asyncio.current_task()
            assert current is not None
            current.cancel()

        async def waits() -> None:
            await asyncio.sleep(0)

        task = begin(body())
        with pytest.raises(asyncio.CancelledError):
            await task
        await begin(waits())
        await asyncio.sleep(0)
        assert begin(ends_at_once()) is None
        await begin(waits())  # the cancelled task is not used again

    play(scene)


def test_an_error_after_waiting_is_the_error_of_the_task() -> None:
    async def scene(begin: Any) -> None:
        async def body() -> None:
            await asyncio.sleep(0)
            raise LookupError("lost")

        task = begin(body())
        with pytest.raises(LookupError, match="lost"):
            await task

    play(scene)


def test_a_task_that_is_dropped_closes_its_coroutine() -> None:
    closed: list[bool] = []

    async def body() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            closed.append(True)

    async def scene(begin: Any) -> None:
        task = begin(body())
        task._log_destroy_pending = False
        task.get_coro().close()
        assert closed == [True]
        task.cancel()
        with pytest.raises((asyncio.CancelledError, RuntimeError)):
            await task

    play(scene)
    gc.collect()
