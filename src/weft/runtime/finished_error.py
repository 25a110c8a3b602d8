"""The error for a command to a run that is over."""

from __future__ import annotations

from weft.core import commands as c
from weft.errors import RunFinished
from weft.ports.store import IMPORTED, MOVED, RunRow

MOVED_TO = "weft.moved_to"
"""The attribute of runs that were moved: where to, or the digest of the bundle."""


def finished_error(row: RunRow, command: c.Mailed, now: int) -> RunFinished:
    """Make the error for a command to a run that is over."""
    if row.status == IMPORTED:
        return imported_error(row)
    if row.status == MOVED:
        return moved_error(row, command)
    what = (
        f'the message "{command.name}" was not delivered'
        if isinstance(command, c.DeliverMessage)
        else "nothing was changed"
    )
    when = format_ago(now - (row.ended_at or now))
    return RunFinished(f"{row.id} {row.status} {when}; {what}.", run_id=row.id)


def moved_error(row: RunRow, command: c.Mailed) -> RunFinished:
    """Make the error for a command to a run with which another store goes on."""
    what = "the patch" if isinstance(command, c.PatchRun) else "this"
    name = f'the message "{command.name}"' if isinstance(command, c.DeliverMessage) else what
    return RunFinished(
        f"{row.id} was moved{moved_to_text(row)}; {name} was not delivered.",
        hint="Send it to the run there. If its bundle was not adopted yet: weft import FILE --adopt",
        code="run.moved",
        run_id=row.id,
    )


def moved_to_text(row: RunRow) -> str:
    """Say where a run went, if it is known."""
    where = row.attributes.get(MOVED_TO)
    return f" to {where}" if isinstance(where, str) and where else ""


def imported_error(row: RunRow) -> RunFinished:
    """Make the error for a command to an imported run, which nothing changes."""
    return RunFinished(
        f"{row.id} was imported, so nothing goes on with it and nothing changes it.",
        hint=f"Fork it: weft fork {row.id}",
        code="run.imported",
        run_id=row.id,
    )


def format_ago(ms: int) -> str:
    """Return how long ago something was, for people."""
    seconds = max(0, ms // 1000)
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
