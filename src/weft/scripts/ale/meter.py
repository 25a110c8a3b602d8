"""The budget of one call of an Ale script, and the two errors that stop it.

Ale loops only by calling functions, so a call costs as many steps as the body of the function has forms. Procedures
cost steps for the elements and the text that they read or make. Memory counts every value that is made, including
garbage. Depth counts Python frames, so that no script can overflow the stack.
"""

from __future__ import annotations

import time
from typing import Final

from weft.scripts.limits import ALE_BYTES_MAX, ALE_STEPS_MAX, TIME_S_MAX

FRAMES_MAX: Final = 450
_SLICE: Final = 20_000


class AleFault(Exception):
    """A value has the wrong type, or the script raised an error. ``try`` catches it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.line = 0


class AleLimitReached(Exception):
    """A limit was reached: steps, time, memory, size or depth. A script cannot catch it."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class Meter:
    """The budget of one call. Steps are taken in slices; the clock is read between slices.

    ``left`` counts the remaining steps of the slice, and ``spare`` those beyond it.
    """

    __slots__ = ("bytes_left", "frames", "left", "spare", "started")

    def __init__(self) -> None:
        self.left = _SLICE
        self.spare = ALE_STEPS_MAX - _SLICE
        self.bytes_left = ALE_BYTES_MAX
        self.frames = 0
        self.started = time.thread_time()

    def charge(self, steps: int) -> None:
        """Charge a number of steps."""
        self.left -= steps
        if self.left < 0:
            self.refill()

    def refill(self) -> None:
        """Take as many slices as the charged steps need."""
        if time.thread_time() - self.started > TIME_S_MAX:
            raise AleLimitReached("time")
        missing = (-self.left // _SLICE + 1) * _SLICE
        if missing > self.spare:
            raise AleLimitReached("steps")
        self.spare -= missing
        self.left += missing

    def take(self, size: int) -> None:
        """Charge memory for a value that is about to be made, and the steps for making it."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise AleLimitReached("memory")
        self.charge(size >> 6)
