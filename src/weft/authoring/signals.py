"""Signals while an app is hosted: SIGTERM ends it like Ctrl-C, and a real Ctrl-C is told apart from a raised one."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from types import FrameType
from typing import Any

from weft.authoring.notebooks import in_notebook
from weft.runtime.stop_signals import StopSignals
from weft.steps.raised import forget_interrupt, note_interrupt

TERMINATED = 143
"""The exit code of a program that SIGTERM ended."""


class HostSignals:
    """The signal handlers of a host, from ``listen`` to ``close``. They do nothing outside the main thread.

    Nor in a notebook, whose kernel handles signals itself.
    """

    def __init__(self) -> None:
        self.terminated = False
        self._draining = False
        self._task: asyncio.Task[Any] | None = None
        self._stop_signals: StopSignals | None = None
        self._interrupted_before: Any = None

    def listen(self) -> None:
        """Cancel the current task on the first SIGTERM, so that it leaves ``async with app``, which drains the host."""
        forget_interrupt()
        self._draining = False
        if threading.current_thread() is not threading.main_thread() or in_notebook():
            return
        self._task = asyncio.current_task()
        # A framework that handles SIGTERM leaves ``async with app`` by itself.
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._stop_signals = StopSignals((signal.SIGTERM,), lambda _: self._terminate())
            with contextlib.suppress(RuntimeError):  # Windows does not support signal handlers on the loop
                self._stop_signals.open()
        before = signal.getsignal(signal.SIGINT)
        if callable(before):
            self._interrupted_before = before
            signal.signal(signal.SIGINT, self._interrupt)

    def drain(self) -> None:
        """Only note SIGTERM from now on: the host is leaving ``async with app`` already."""
        self._draining = not self.terminated

    def close(self) -> None:
        """Restore the signal handlers."""
        if self._stop_signals is not None:
            self._stop_signals.close()
            self._stop_signals = None
        if self._interrupted_before is not None and signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGINT, self._interrupted_before)
        self._interrupted_before = None

    def has_ended(self, error: BaseException | None) -> bool:
        """Return whether SIGTERM ended the hosting task, or came while the host drained after the task was done."""
        expected = error is None if self._draining else isinstance(error, asyncio.CancelledError)
        return self.terminated and expected

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        note_interrupt()
        self._interrupted_before(number, frame)

    def _terminate(self) -> None:
        if self.terminated or self._task is None or self._task.done():
            raise SystemExit(TERMINATED)  # the second signal: exit at once
        self.terminated = True
        if not self._draining:
            self._task.cancel()
