"""A thread with an event loop, which keeps an engine or a client open for programs without a loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from functools import partial

from weft.authoring.blocking.calls import LoopCalls, refuse_after_fork, refuse_running_loop
from weft.errors import NotRunning, UsageError
from weft.steps.task import current_task

log = logging.getLogger("weft")

Keep = Callable[[], AbstractAsyncContextManager[LoopCalls]]
"""Opens something on the loop. It gives the calls of that loop, and is left when the thread ends."""


class LoopThread:
    """A thread that starts at the first call, and ends with ``close`` or with the program.

    A forked process has no such thread: it must open its own, and may do so only if none was open at the fork. SQLite
    confuses the locks of both processes otherwise.
    """

    def __init__(self, name: str, keep: Keep) -> None:
        self._name = name
        self._keep = keep
        self._lock = threading.Lock()
        self._life: _ThreadLife | None = None
        self._opening: _ThreadLife | None = None
        """The life that opens now, while the lock is held."""
        self._process: int | None = None
        """The process that has the thread; None if there is none."""
        self._ends_at_exit = False
        self._is_at_exit = False
        """Whether the program ends. A thread that goes on after that can open nothing: no step could be performed."""
        self._closing = False

    def open(self) -> LoopCalls:
        """Start the thread, unless it runs, and return the calls of its loop."""
        refuse_after_fork(self._process or os.getpid())  # before the lock, which may be held at the fork
        if self._closing and current_task() is not None:
            # Closing waits for this step, and the step would wait for the lock.
            raise NotRunning("The engine is being closed, so this step cannot use it.", hint="It is retried later.")
        with self._lock:
            if self._life is not None and self._life.is_over():
                self._forget().end()  # raises why it ended by itself
            if self._life is None:
                if self._is_at_exit:
                    raise _at_exit()
                self._process = os.getpid()
                try:
                    self._life = self._start()
                except BaseException:
                    self._process = None
                    raise
            return self._life.calls

    def close(self) -> None:
        """Leave what is open and end the thread. Does nothing if there is none. Raises what leaving it raises."""
        refuse_running_loop("app.sync.close()")
        if current_task() is not None:
            raise UsageError("A step cannot close the engine that performs it.", hint="Close it in the program.")
        refuse_after_fork(self._process or os.getpid())
        with self._lock:
            if self._life is not None:
                self._closing = True
                try:
                    self._forget().end()
                finally:
                    self._closing = False

    def _start(self) -> _ThreadLife:
        if not self._ends_at_exit:
            at_exit(partial(_close_at_exit, weakref.ref(self)))
            self._ends_at_exit = True
        self._opening = _ThreadLife(self._name, self._keep)
        try:
            self._opening.wait_until_open()
            return self._opening
        finally:
            self._opening = None

    def _forget(self) -> _ThreadLife:
        life, self._life, self._process = self._life, None, None
        assert life is not None, "there is a thread"
        return life

    def close_at_exit(self) -> None:
        """Close when the program ends, unless this is a forked process, which has no such thread.

        What opens at that moment is given up: it may wait for something that never comes.
        """
        self._is_at_exit = True
        if self._process == os.getpid():
            opening = self._opening
            if opening is not None:
                opening.give_up()
            self.close()


def at_exit(end: Callable[[], None]) -> None:
    """Call a function when the program ends, while threads can still be used. Errors are logged.

    Raises NotRunning if it ends already.

    Python's own ``atexit`` is too late: no thread can be started then, and pools of threads are closed.
    """

    def end_safely() -> None:
        try:
            end()
        except Exception:
            log.exception("weft: could not end cleanly; what was running goes on when the program starts again")

    try:
        threading._register_atexit(end_safely)  # type: ignore[attr-defined]  # noqa: SLF001 - as concurrent.futures does
    except RuntimeError:
        raise _at_exit() from None


def _close_at_exit(thread: weakref.ref[LoopThread]) -> None:
    found = thread()
    if found is not None:
        found.close_at_exit()


def _at_exit() -> NotRunning:
    return NotRunning(
        "The program is ending, so this thread cannot open the engine or client.",
        hint="Wait for the thread where the program ends: thread.join(). What was started goes on with the next host.",
    )


def _cancelled() -> NotRunning:
    return NotRunning(
        "The task that keeps the engine or client open was cancelled, so it was closed.",
        hint="Does a step cancel tasks that it did not create? The next call opens it again; its runs continue.",
    )


class _ThreadLife:
    """One life of the thread: it opens, serves calls, and ends."""

    def __init__(self, name: str, keep: Keep) -> None:
        self._keep = keep
        self._opened: Future[LoopCalls] = Future()
        self._ended: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._wanted = True
        self._given_up = False
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def wait_until_open(self) -> None:
        """Wait for the calls of the loop. Raises what opening raises."""
        try:
            self.calls = self._opened.result()
        except BaseException:
            if self._opened.done():
                self._thread.join()
            else:
                self._request_stop()  # Ctrl-C while it opens
            raise

    def give_up(self) -> None:
        """Let what opens now be cancelled."""
        self._given_up = True
        self._request_stop()
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._task.cancel)

    def end(self) -> None:
        """End the thread and wait for it. Raises what leaving what was open raised."""
        self._request_stop()
        self._thread.join()
        self._ended.result()

    def is_over(self) -> bool:
        """Return whether the thread has ended by itself."""
        return not self._thread.is_alive()

    def _request_stop(self) -> None:
        self._wanted = False
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._stop.set)

    def _serve(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001 - raised to whoever opens or closes
            is_cancelled = isinstance(error, asyncio.CancelledError)
            cause = _at_exit() if self._given_up else _cancelled() if is_cancelled else error
            (self._ended if self._opened.done() else self._opened).set_exception(cause)
        else:
            self._ended.set_result(None)
        finally:
            if self._opened.done() and self._opened.exception() is None:
                self._opened.result().close()

    async def _live(self) -> None:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if self._given_up:
            raise _at_exit()
        async with self._keep() as calls:
            self._opened.set_result(calls)
            if self._wanted:
                await self._stop.wait()
