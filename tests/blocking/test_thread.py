"""The thread that keeps an engine or a client open."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import weft
from weft.authoring.blocking.calls import LoopCalls
from weft.authoring.blocking.thread import LoopThread
from weft.steps.task import CURRENT_TASK


def in_a_step() -> contextvars.Context:
    """The context in which the body of a step runs."""
    context = contextvars.copy_context()
    context.run(CURRENT_TASK.set, partial(weft.Task, key="k", attempt=1, run_id="r-1", step="late"))
    return context


def test_a_step_is_refused_while_it_is_closed_because_closing_waits_for_the_step() -> None:
    closing, refused = threading.Event(), threading.Event()

    @contextlib.asynccontextmanager
    async def keep() -> AsyncIterator[LoopCalls]:
        yield LoopCalls(asyncio.get_running_loop())
        closing.set()
        await asyncio.to_thread(refused.wait)

    thread = LoopThread("weft-test", keep)
    thread.open()

    def late() -> None:
        closing.wait()
        with pytest.raises(weft.NotRunning, match="being closed"):
            thread.open()
        refused.set()

    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(in_a_step().run, late)
        thread.close()
        step.result()
    assert "weft-test" not in {each.name for each in threading.enumerate()}


def test_what_fails_to_open_or_to_close_is_raised_to_the_caller_and_leaves_no_thread() -> None:
    fails_at = ["open", "close"]

    @contextlib.asynccontextmanager
    async def keep() -> AsyncIterator[LoopCalls]:
        if "open" in fails_at:
            raise OSError("open")
        yield LoopCalls(asyncio.get_running_loop())
        if "close" in fails_at:
            raise OSError("close")

    thread = LoopThread("weft-test", keep)
    with pytest.raises(OSError, match="open"):
        thread.open()
    fails_at.remove("open")
    thread.open()
    with pytest.raises(OSError, match="close"):
        thread.close()
    thread.close()
    assert "weft-test" not in {each.name for each in threading.enumerate()}


def test_one_that_ended_by_itself_says_why_and_is_opened_again() -> None:
    ends = threading.Event()

    @contextlib.asynccontextmanager
    async def keep() -> AsyncIterator[LoopCalls]:
        task = asyncio.current_task()
        assert task is not None
        if not ends.is_set():
            ends.set()
            asyncio.get_running_loop().call_soon(task.cancel)
        yield LoopCalls(asyncio.get_running_loop())

    thread = LoopThread("weft-test", keep)
    thread.open()
    for each in threading.enumerate():
        if each.name == "weft-test":
            each.join()
    with pytest.raises(weft.NotRunning, match="was cancelled"):
        thread.open()
    calls = thread.open()

    async def answer() -> int:
        return 42

    assert calls.run(answer()) == 42
    thread.close()
    with pytest.raises(weft.NotRunning, match="It is closed"):
        calls.run(answer())
