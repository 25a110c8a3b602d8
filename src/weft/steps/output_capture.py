"""Passes what steps print and log on to their tasks. Terminal, files and log handlers still get all of it.

``sys.stdout`` and ``sys.stderr`` are wrapped, and ``logging`` calls back after the handlers of a record, so that a
filter that removes something from a record removes it here, too. Who printed is a context variable: it follows async
code, ``asyncio.to_thread`` and plain steps in threads, but not threads that a step starts by itself.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from weft.steps.task import CURRENT_TASK

OWN_LOGGER = "weft"
"""Weft's own log lines are not output of a step, even if they are written while one runs."""

_handling = threading.local()
"""Says of a thread that it is calling log handlers. What they print is the record, which is kept already."""


class CapturedStream:
    """A text stream that also passes what is written to the task of the current step."""

    def __init__(self, stream: TextIO, source: str) -> None:
        self.stream = stream
        self.users = 1
        """How many hosts in this process capture output."""
        self._source = source

    def write(self, text: str) -> int:
        """Write to the stream, then pass the text on."""
        written = self.stream.write(text)
        make = CURRENT_TASK.get(None)
        if make is not None and text and not getattr(_handling, "active", False):
            make().note_output(self._source, text)
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _CapturedHandlers:
    """Replaces ``logging.Logger.callHandlers``."""

    def __init__(self, original: Callable[[logging.Logger, logging.LogRecord], None]) -> None:
        self.original = original
        self.users = 1

    def __get__(self, logger: logging.Logger | None, _owner: object = None) -> Callable[[logging.LogRecord], None]:
        return lambda record: self._call(logger, record)

    def _call(self, logger: Any, record: logging.LogRecord) -> None:
        before = getattr(_handling, "active", False)
        _handling.active = True
        try:
            self.original(logger, record)
        finally:
            _handling.active = before
        make = CURRENT_TASK.get(None)
        if make is not None and record.name.partition(".")[0] != OWN_LOGGER:
            make().note_output(record.name, _text_of(record), record.levelno)


def capture_output() -> Callable[[], None]:
    """Capture the output of steps in this process from now on. Returns a function that ends it."""
    ends = [_capture_stream("stdout"), _capture_stream("stderr"), _capture_logging()]

    def end() -> None:
        while ends:
            ends.pop()()

    return end


def _capture_stream(name: str) -> Callable[[], None]:
    current = getattr(sys, name)
    if current is None:  # a process without a terminal, such as pythonw
        return lambda: None
    if isinstance(current, CapturedStream):
        current.users += 1
        captured = current
    else:
        captured = CapturedStream(current, name)
        setattr(sys, name, captured)

    def end() -> None:
        captured.users -= 1
        # Somebody else may have replaced the stream meanwhile. Then it is theirs to put back.
        if not captured.users and getattr(sys, name) is captured:
            setattr(sys, name, captured.stream)

    return end


def _capture_logging() -> Callable[[], None]:
    current = logging.Logger.__dict__["callHandlers"]
    if isinstance(current, _CapturedHandlers):
        current.users += 1
        captured = current
    else:
        captured = _CapturedHandlers(current)
        logging.Logger.callHandlers = captured  # type: ignore[method-assign, assignment]

    def end() -> None:
        captured.users -= 1
        if not captured.users and logging.Logger.__dict__["callHandlers"] is captured:
            logging.Logger.callHandlers = captured.original  # type: ignore[method-assign]

    return end


def _text_of(record: logging.LogRecord) -> str:
    """Return the message of a record, with its traceback if it has one."""
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001 - the arguments do not fit; logging has reported it
        text = str(record.msg)
    traceback = record.exc_text
    if record.exc_info and not traceback:
        traceback = logging.Formatter().formatException(record.exc_info)
    return "\n".join(part for part in (text, traceback, record.stack_info) if part)
