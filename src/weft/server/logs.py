"""Structured logs: one JSON object per line, with the run that it is about wherever that is known.

The run is that of the step which is being performed, or of the request which is being answered. People at a terminal
get the same as text.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from weft.core.escapes import escape_controls, escape_line
from weft.steps.base import CURRENT_TASK
from weft.steps.secrets import strike, strike_json

RUN_ID: ContextVar[str] = ContextVar("weft_run_id", default="")
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_encode = msgspec.json.Encoder(enc_hook=str).encode


def run_of_context() -> str:
    """Return the run of the current step or request."""
    task = CURRENT_TASK.get(None)
    return task.run_id if task is not None else RUN_ID.get()


def facts(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a log record."""
    found: dict[str, Any] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    run = getattr(record, "run", "")
    if run:
        found["run"] = run
    task = getattr(record, "step", "")
    if task:
        found["step"] = task
    found.update({name: value for name, value in vars(record).items() if name not in _OWN and name not in found})
    return found


class WithRun(logging.Filter):
    """Adds the run when a record is made: its handler may run in another context."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "run"):
            run = run_of_context()
            if run:
                record.run = run
            task = CURRENT_TASK.get(None)
            if task is not None:
                record.step = task.step
        return True


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object, for programs."""

    def format(self, record: logging.LogRecord) -> str:
        found = facts(record)
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return strike_json(_encode(found)).decode()


class TextLines(logging.Formatter):
    """Formats a record as one line of text, for people."""

    def format(self, record: logging.LogRecord) -> str:
        found = facts(record)
        more = {
            name: value for name, value in found.items() if name not in ("at", "level", "logger", "message", "step")
        }
        tail = "".join(f" {name}={value}" for name, value in more.items())
        text = f"{found['at'][11:19]} {found['level']}: {found['message'].removeprefix('weft: ')}{tail}"
        # Secrets are found by their value, so they are removed before characters are escaped.
        told = escape_line(strike(text))
        return f"{told}\n{escape_controls(strike(self.formatException(record.exc_info)))}" if record.exc_info else told


def log_to(stream: TextIO, *, level: int = logging.INFO) -> None:
    """Send all logs of this process to a stream."""
    target = logging.StreamHandler(stream)
    target.addFilter(WithRun())
    target.setFormatter(TextLines() if stream.isatty() else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [target]
    root.setLevel(level)
