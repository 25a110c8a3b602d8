"""Distinguish exceptions raised by user code from those that end the host.

Any exception that a body or a workflow raises, even a ``BaseException``, is a failure of that code. There are two
exceptions to this rule: Ctrl-C at the terminal, which Python raises wherever the main thread is, and the end of a
simulated process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from weft.ports.boundary import ProcessDied
from weft.steps.task import Executor

T = TypeVar("T")

_interrupted = threading.Event()


class BodyRaised(Exception):
    """Carries a StopIteration out of a coroutine. Python would otherwise turn it into a RuntimeError."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)
        self.error = error


def note_interrupt() -> None:
    """Record that Ctrl-C was pressed. From now on, a KeyboardInterrupt is meant for the host."""
    _interrupted.set()


def forget_interrupt() -> None:
    """Forget an earlier Ctrl-C, when a new host starts."""
    _interrupted.clear()


def ends_host(error: BaseException) -> bool:
    """Return whether an exception from user code is meant for the host and was not raised by the code itself."""
    return isinstance(error, ProcessDied) or (isinstance(error, KeyboardInterrupt) and _interrupted.is_set())


async def call_in_thread(executor: Executor, body: Callable[[], T]) -> T:
    """Run a plain function in a thread. Raises its exception, or BodyRaised for a StopIteration."""
    # A future rejects a StopIteration and would stay pending, so errors are returned as values.
    value, error = await executor.in_thread(partial(_captured, body))
    if error is None:
        return value  # type: ignore[return-value]
    try:
        if isinstance(error, StopIteration):
            raise BodyRaised(error) from error
        raise error
    finally:
        del error  # its traceback refers to this frame


def _captured(body: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return body(), None
    except BaseException as error:
        if ends_host(error):
            raise
        return None, error
