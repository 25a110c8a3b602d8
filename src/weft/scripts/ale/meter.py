"""What one call of an Ale script may still use, and the two ways in which it ends early.

Nothing in Ale loops but by calling a function, so steps are drawn when a function is entered (as many as its body has
forms) and by procedures for the elements and text they touch. Memory counts what is made, kept or not. Depth counts
Python's own frames, so that no script can overflow the stack.
"""

from __future__ import annotations

import time
from typing import Final

from weft.scripts.limits import ALE_BYTES_MAX, ALE_STEPS_MAX, TIME_S_MAX

FRAMES_MAX: Final = 450
_SLICE: Final = 20_000


class AleFault(Exception):
    """The values do not fit, or the script raised. `try` catches it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.line = 0


class AleLimitReached(Exception):
    """A limit is reached: steps, time, memory, size or depth. Nothing in a script catches it."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class Meter:
    """One call. `left` is what is left of a slice; the clock is read between slices."""

    __slots__ = ("bytes_left", "frames", "left", "spare", "started")

    def __init__(self) -> None:
        self.left = _SLICE
        self.spare = ALE_STEPS_MAX - _SLICE
        self.bytes_left = ALE_BYTES_MAX
        self.frames = 0
        self.started = time.thread_time()

    def charge(self, steps: int) -> None:
        """Draw steps."""
        self.left -= steps
        if self.left < 0:
            self.refill()

    def refill(self) -> None:
        """Take the next slices, as many as are missing."""
        if time.thread_time() - self.started > TIME_S_MAX:
            raise AleLimitReached("time")
        missing = (-self.left // _SLICE + 1) * _SLICE
        if missing > self.spare:
            raise AleLimitReached("steps")
        self.spare -= missing
        self.left += missing

    def take(self, size: int) -> None:
        """Draw memory for something about to be made, and the steps that making it costs."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise AleLimitReached("memory")
        self.charge(size >> 6)
