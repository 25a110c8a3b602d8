"""A thread of its own for work that would hold up the event loop. One at a time, in the order of asking."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Lane:
    """Runs callables on one thread, which starts with the first of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Whatever ``work`` returns or raises. Cancelling the wait does not stop the work."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((work, loop, future))
        if self._thread is None:
            self._start()
        return await future

    def _start(self) -> None:
        # Two threads may ask for the first time at once, each with a loop of its own.
        with self._starting:
            if self._thread is None:
                # A daemon: a store that nobody closed must not keep a process from ending.
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread after the work that is waiting. Blocks until then."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, loop, future = job
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  # whoever waits must hear of it, whatever it is
                _report(loop, _fail, future, error)
            else:
                _report(loop, _finish, future, result)


def _report(loop: asyncio.AbstractEventLoop, how: Callable[..., None], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(how, *arguments)
    except RuntimeError:
        # The loop was closed meanwhile: nobody waits any more.
        return


def _finish(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
