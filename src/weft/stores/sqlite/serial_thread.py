"""A thread for work that would block the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class SerialThread:
    """Runs callables on one thread, one at a time and in order. The thread starts with the first one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` on the thread and return its result. Cancelling the wait does not stop the work."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((work, loop, future))
        if self._thread is None:
            self._start_thread()
        return await future

    def _start_thread(self) -> None:
        # Two event loops on different threads may get here at once.
        with self._starting:
            if self._thread is None:
                # A daemon thread: a store that was not closed must not keep the process alive.
                self._thread = threading.Thread(target=self._run_jobs, name=self._name, daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the work in the queue. Blocks until then."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, loop, future = job
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  # the caller gets every error
                _report_to_loop(loop, _fail_future, future, error)
            else:
                _report_to_loop(loop, _finish_future, future, result)


def _report_to_loop(loop: asyncio.AbstractEventLoop, how: Callable[..., None], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(how, *arguments)
    except RuntimeError:
        # The loop was closed meanwhile, so nobody waits.
        return


def _finish_future(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail_future(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
