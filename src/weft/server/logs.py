"""Structured logs: one JSON object per line, with the run that it is about, if that is known.

The run is that of the current step or request. On a terminal, the same is written as text.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from weft.core.escapes import escape_controls, escape_line
from weft.steps.secrets import replace_secrets, strike_json
from weft.steps.task import current_task

RUN_ID: ContextVar[str] = ContextVar("weft_run_id", default="")
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_encode = msgspec.json.Encoder(enc_hook=str).encode


def current_run_id() -> str:
    """Return the run of the current step or request."""
    task = current_task()
    return task.run_id if task is not None else RUN_ID.get()


def record_fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a log record."""
    fields: dict[str, Any] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    run = getattr(record, "run", "")
    if run:
        fields["run"] = run
    step = getattr(record, "step", "")
    if step:
        fields["step"] = step
    fields.update(
        {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS and name not in fields}
    )
    return fields


class AddRun(logging.Filter):
    """Adds the run when a record is created, because its handler may run in another context."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "run"):
            run = current_run_id()
            if run:
                record.run = run
            task = current_task()
            if task is not None:
                record.step = task.step
        return True


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object, for programs."""

    def format(self, record: logging.LogRecord) -> str:
        fields = record_fields(record)
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return strike_json(_encode(fields)).decode()


class TextLines(logging.Formatter):
    """Formats a record as one line of text, for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = record_fields(record)
        extra = {
            name: value for name, value in fields.items() if name not in ("at", "level", "logger", "message", "step")
        }
        tail = "".join(f" {name}={value}" for name, value in extra.items())
        text = f"{fields['at'][11:19]} {fields['level']}: {fields['message'].removeprefix('weft: ')}{tail}"
        # Secrets are removed before characters are escaped, because they are found by their value.
        line = escape_line(replace_secrets(text))
        return (
            f"{line}\n{escape_controls(replace_secrets(self.formatException(record.exc_info)))}"
            if record.exc_info
            else line
        )


def log_to(stream: TextIO, *, level: int = logging.INFO) -> None:
    """Send all logs of this process to a stream."""
    target = logging.StreamHandler(stream)
    target.addFilter(AddRun())
    target.setFormatter(TextLines() if stream.isatty() else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [target]
    root.setLevel(level)
