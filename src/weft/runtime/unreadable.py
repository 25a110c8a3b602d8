"""Errors about runs whose stored data cannot be read.

A host that finds such a run marks its row with a fault. For a run without a host, the damage is found when it is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from weft.core import events as e
from weft.core.ids import Seq
from weft.errors import Corrupt, RunUnreadable
from weft.ports.store import RunLog, RunRow, StoredEvent

NOT_UNDONE = "Its stored data cannot be read, so nothing that it did was undone."


def unreadable_error(row: RunRow, why: str) -> RunUnreadable:
    """Make the error about a run, with a hint on what to do."""
    hint = "Restore the store from a backup."
    if row.ended_at is None:
        hint = (
            f"Restore the store from a backup, or update Weft if a newer one wrote it; then: weft resume {row.id}. "
            f"To end the run without undoing anything: weft cancel {row.id} --force"
        )
    return RunUnreadable(f"{row.id} cannot be read: {why}", hint=hint, run_id=row.id, why=why)


def definition_gone_error(row: RunRow) -> RunUnreadable:
    """Make the error about a run whose graph is no longer in the store."""
    waits = f"version {row.version} of {row.workflow}, which is not in the store"
    hint = "Run the program that registers this version, or: weft serve app.py. That stores it again."
    if row.ended_at is None:
        hint += f" To end the run without undoing anything: weft cancel {row.id} --force"
    why = f"it waits for {waits}."
    return RunUnreadable(f"{row.id} cannot be read: {why}", hint=hint, run_id=row.id, why=why, waits=waits)


@contextlib.contextmanager
def naming_run_in_errors(row: RunRow) -> Iterator[None]:
    """Translate a Corrupt error in the block into an error that names the run."""
    try:
        yield
    except RunUnreadable:
        raise
    except Corrupt as error:
        raise unreadable_error(row, error.message) from error


async def stored_page(
    log: RunLog, row: RunRow, *, after: int, limit: int
) -> tuple[Sequence[StoredEvent], RunUnreadable | None]:
    """Return a page of the log as far as the store can read it, and the error about the next event, if there is one.

    Its events are not decoded, which may fail too (``undecodable_error``).
    """
    try:
        return await log.events(row.uid, after=Seq(after), limit=limit), None
    except Corrupt as error:
        bad = error.context.get("seq")
        left = bad - after - 1 if isinstance(bad, int) else 0
        page = await log.events(row.uid, after=Seq(after), limit=left) if left > 0 else ()
        return page, unreadable_error(row, error.message)


async def readable_events(
    log: RunLog, row: RunRow, *, after: int, limit: int
) -> tuple[Sequence[StoredEvent], RunUnreadable | None]:
    """Return a page of the log as far as it can be read, and the error about the next event, if there is one."""
    page, problem = await stored_page(log, row, after=after, limit=limit)
    for number, stored in enumerate(page):
        try:
            e.decode(stored.body)
        except Corrupt as error:
            return page[:number], undecodable_error(row, stored, error)
    return page, problem


def undecodable_error(row: RunRow, stored: StoredEvent, error: Corrupt) -> RunUnreadable:
    """Make the error about an event of a run that this version of Weft cannot decode."""
    return unreadable_error(row, f"Event {stored.seq}: {error.message}")
