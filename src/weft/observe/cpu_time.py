"""Measure the CPU time that a coroutine takes on the thread of its loop, without the time in which it waits."""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class CpuTime:
    """Adds up the CPU time of what it measures."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self.seconds = 0.0
        self._clock = clock

    @types.coroutine
    def measure(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Await a coroutine and return what it returns. Other tasks that run meanwhile do not count."""
        resume: Callable[[Any], Any] = work.send
        value: Any = None
        while True:
            began = self._clock()
            try:
                waited = resume(value)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                self.seconds += self._clock() - began
            try:
                resume, value = work.send, (yield waited)
            except BaseException as error:  # noqa: BLE001  # the error belongs to the coroutine, which may handle it
                resume, value = work.throw, error
