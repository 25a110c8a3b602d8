"""Signals that stop a process, even if user code blocks its event loop.

A loop handles a signal when it turns next. Code that never returns to the loop, such as ``while True: pass`` in a
workflow, would keep the process from ending; then the second signal ends it at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import PurePath
from types import FrameType

from weft.steps.frames import is_users

BLOCKED_SECONDS = 1.0
"""A loop that has not handled a signal for this long counts as blocked. Two signals at once are no second signal."""


class StopSignals:
    """The handlers of some signals, from ``open`` to ``close``. Only the main thread may use them."""

    def __init__(self, numbers: Sequence[signal.Signals], on_signal: Callable[[signal.Signals], None]) -> None:
        """``on_signal`` is called on the event loop for every signal."""
        self._numbers = numbers
        self._on_signal = on_signal
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unhandled_since = 0.0
        """When the first signal arrived that the loop has not handled; 0 if there is none."""

    def open(self) -> None:
        """Handle the signals. Raises RuntimeError on Windows, whose loops handle none."""
        loop = asyncio.get_running_loop()
        for number in self._numbers:
            loop.add_signal_handler(number, self._on_loop, number)
            self._loop = loop
            # Python calls this handler too, in the middle of the code that the main thread executes.
            signal.signal(number, self._in_between)

    def close(self) -> None:
        """Restore the default handlers."""
        loop, self._loop = self._loop, None
        for number in self._numbers if loop is not None else ():
            loop.remove_signal_handler(number)  # type: ignore[union-attr]

    def _on_loop(self, number: signal.Signals) -> None:
        self._unhandled_since = 0.0
        self._on_signal(number)

    def _in_between(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self._unhandled_since:
            self._unhandled_since = now
        elif now - self._unhandled_since >= BLOCKED_SECONDS:
            told = (
                f"weft: stopped at once, because code blocks the event loop{_user_line(frame)}. Runs go on next time.\n"
            )
            os.write(2, told.encode())
            os._exit(128 + number)


def _user_line(frame: FrameType | None) -> str:
    """Return the innermost user line, as in " at app.py:12"."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return f" at {PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
