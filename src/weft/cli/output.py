"""Format the output of commands: JSON with UTC times for programs, short lines with local times for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Self

import msgspec
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text as RichText

from weft.core import values
from weft.core.durations import format_ms
from weft.core.escapes import escape_controls, escape_json, escape_line
from weft.core.start_rules import key_of_slot
from weft.errors import Failure
from weft.ports.store import RunRow

WIDTH_MAX = 100_000
STYLES = {
    "pending": "cyan",
    "running": "cyan",
    "completed": "green",
    "done": "green",
    "failed": "red",
    "held": "bold red",
    "paused": "yellow",
    "cancelled": "yellow",
    "cancelling": "yellow",
    "rolling_back": "yellow",
    "imported": "dim",
    "moved": "dim",
}


class SafeText(RichText):
    """One line on the terminal. Line breaks and escape sequences are shown as visible text."""

    def __init__(self, text: str = "", style: str | Style = "") -> None:
        super().__init__(escape_line(text), style)

    def append(self, text: RichText | str, style: str | Style | None = None) -> Self:
        super().append(escape_line(text) if isinstance(text, str) else text, style)
        return self

    @classmethod
    def assemble(cls, *parts: RichText | str | tuple[str, str | Style], style: str | Style = "") -> Self:  # type: ignore[override]
        text = cls(style=style)
        for part in parts:
            text.append(*part) if isinstance(part, tuple) else text.append(part)
        return text


def lines(text: str, style: str = "") -> RichText:
    """Return a text of several lines, with escape sequences as visible text."""
    return RichText(escape_controls(text), style)


class _Console(Console):
    def render_str(self, text: str, **options: Any) -> RichText:
        return super().render_str(escape_controls(text), **options)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, so that the entry point ends quietly after the reader closed the pipe."""
        raise BrokenPipeError


def console() -> Console:
    """Return a console for stdout. It shows escape sequences as visible text, and does not cut piped output."""
    width = None if sys.stdout.isatty() else WIDTH_MAX
    return _Console(highlight=False, soft_wrap=True, width=width)


def print_json(document: Any) -> None:
    """Print a value as indented JSON."""
    print(escape_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()))


def print_table(out: Console, headings: Sequence[str], rows: Iterable[Sequence[str | RichText]]) -> None:
    """Print columns without a frame. On a terminal, only the last column is cut."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True, overflow="fold")
    table.add_column(headings[-1], no_wrap=True, overflow="ellipsis", ratio=1 if out.is_terminal else None)
    for row in rows:
        table.add_row(*(SafeText(cell) if isinstance(cell, str) else cell for cell in row))
    out.print(table)


def status_text(status: str) -> SafeText:
    """Return a status with its colour."""
    return SafeText(status.replace("_", " "), style=STYLES.get(status, ""))


def iso_time(ms: int | None) -> str | None:
    """Format a time for programs, in UTC."""
    return None if not ms else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def time_text(ms: int) -> str:
    """Format a time for people, with the date unless it is today."""
    when = datetime.fromtimestamp(ms / 1000).astimezone()
    today = datetime.now().astimezone().date() == when.date()
    return f"{when:%H:%M:%S}" if today else f"{when:%Y-%m-%d %H:%M:%S}"


def age_text(ms: int) -> str:
    """Format a duration in at most two units: "3d4h", "12m", "5s"."""
    ms = max(0, ms)
    if ms >= 3_600_000:
        return format_ms(ms - ms % (3_600_000 if ms >= 86_400_000 else 60_000))
    return format_ms(ms - ms % (60_000 if ms >= 600_000 else 1_000))


def took(ms: int) -> str:
    """Format how long something took: in milliseconds below 10 seconds, and in seconds above."""
    return format_ms(ms) if ms < 10_000 else format_ms(ms - ms % 1_000)


def value_text(raw: bytes, *, chars_max: int = 70) -> str:
    """Return the shortened text of a recorded value."""
    if values.is_ref(raw):
        return f"({values.parse_ref(raw).size:,} bytes)"
    text = values.unseal(raw).decode("utf-8", "replace")
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def pretty_result(raw: bytes) -> str:
    """Format a result for people: text unchanged, and everything else as indented JSON."""
    decoded = msgspec.json.decode(raw)
    return decoded if isinstance(decoded, str) else msgspec.json.format(raw, indent=2).decode()


def recorded_document(raw: bytes) -> Any:
    """Return a recorded value for programs. A value that is stored outside the log is returned as its reference."""
    return msgspec.json.decode(raw if values.is_ref(raw) else values.unseal(raw))


def failure_text(failure: Failure) -> str:
    """Describe a failure in one line."""
    where = f" ({failure.where})" if failure.where else ""
    message = escape_line(failure.message.rstrip(". \n"))
    cause = f", caused by {failure.cause}" if failure.cause else ""
    return f"{failure.type}: {message}{where}{cause}" if message else f"{failure.type}{where}{cause}"


def with_full_stop(text: str) -> str:
    """Add a full stop to a text if it has none."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def run_document(row: RunRow) -> dict[str, Any]:
    """Return the fields of a run that every JSON listing has."""
    return {
        "id": row.id,
        "workflow": row.workflow,
        "version": row.version,
        "status": row.status,
        "created_at": iso_time(row.created_at),
        "updated_at": iso_time(row.updated_at),
        "ended_at": iso_time(row.ended_at),
        "attributes": dict(row.attributes),
        "hosted": row.owner is not None,
        "fault": row.fault,
        "priority": row.priority,
        "key": key_of_slot(row.slot) if row.slot is not None else None,
    }
