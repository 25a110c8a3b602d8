"""Run coroutines on the event loop of another thread, and wait for them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from weft.errors import LoopRunning, NotRunning, UsedAfterFork

T = TypeVar("T")


class LoopCalls:
    """The blocking calls that are under way on one event loop. Any thread but that of the loop may make them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """``loop`` is that of the calling thread."""
        self._loop = loop
        self._thread = threading.get_ident()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self._closed = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result. The caller's context variables are set there.

        Raises NotRunning if the loop ends before the coroutine does, and LoopRunning in the thread of the loop.
        """
        try:
            future = self._submit(coroutine)
        except BaseException:
            coroutine.close()
            raise
        try:
            return future.result()
        except CancelledError:
            if self._loop.is_closed():
                coroutine.close()  # it may never have begun, and then Python would warn about it
            raise _closed("It was closed while this call waited.") from None
        except BaseException:
            future.cancel()  # Ctrl-C: nobody waits for it any more
            raise
        finally:
            with self._lock:
                self._waiting.discard(future)

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        self.refuse_after_fork()  # before the lock, which another thread may have held at the fork
        with self._lock:
            if self._closed:
                raise _closed("It is closed.")
            if threading.get_ident() == self._thread and not self._loop.is_closed():
                raise LoopRunning(
                    "This call blocks, but the engine works on the event loop of this thread, which would stand still.",
                    hint="Use await there: await app.start(...). In a notebook, use either await or app.sync.",
                )
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            self._waiting.add(future)
            return future

    def refuse_after_fork(self) -> None:
        """Refuse to use a loop that runs in the parent of this process. Raises UsedAfterFork."""
        refuse_after_fork(self._process)

    def is_here(self) -> bool:
        """Return whether the loop is the one that runs in this thread."""
        return asyncio.get_running_loop() is self._loop

    def refuse_elsewhere(self) -> None:
        """Refuse to use the engine from another event loop than its own. Raises LoopRunning."""
        if not self.is_here():
            raise LoopRunning(
                "This process already hosts the app, on the event loop of another thread.",
                hint="In a thread without an event loop, use app.sync: app.sync.start(order(...)).result()",
            )

    def is_over(self) -> bool:
        """Return whether the loop was closed."""
        return self._loop.is_closed()

    def close(self) -> None:
        """End all calls with NotRunning, and refuse new ones."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiting)
        for future in waiting:
            future.cancel()


def is_loop_running() -> bool:
    """Return whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def refuse_running_loop(call: str) -> None:
    """Refuse to block a thread whose event loop would then stand still. Raises LoopRunning."""
    if is_loop_running():
        raise LoopRunning(
            f"{call} blocks, but an event loop runs in this thread (Jupyter, FastAPI, an async function?).",
            hint=f"Use await there: await {call.replace('.sync', '')}",
        )


def refuse_after_fork(opened_in: int) -> None:
    """Refuse to use what another process opened. Raises UsedAfterFork."""
    if opened_in != os.getpid():
        raise UsedAfterFork(
            "This process was forked from one in which the engine or client was open, so it cannot use it.",
            hint="Open it only after the fork: do not use .sync while the application is loaded, or close() it before.",
        )


def _closed(what: str) -> NotRunning:
    return NotRunning(
        f"The engine or client behind this call is not open. {what}", hint="Open it again, and repeat it."
    )
