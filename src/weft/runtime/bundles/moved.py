"""What a bundle that moves runs must have: a digest of all logs, which every run that was open has in its last event.

The digest is written to the store that the runs leave before there is a bundle. So a bundle whose logs end with it
proves that nothing goes on with the runs where they came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from weft.core import events as e
from weft.core.ids import RunUid, Seq
from weft.errors import Corrupt, UsageError
from weft.ports.retention import NEWEST, AuditEntry, Holds
from weft.ports.store import KeyRow, StoredEvent
from weft.runtime.bundles.archive import CheckedBundle, CheckedRun
from weft.runtime.bundles.format import MANIFEST, log_bytes, run_file


class MovingLog:
    """The log of one run without the event that moves it, and the keys of its commands."""

    def __init__(self, uid: RunUid, events: Sequence[StoredEvent], keys: Sequence[KeyRow]) -> None:
        self.uid = uid
        self.events = events
        self.keys = keys

    @property
    def line(self) -> str:
        """The line that stands for it in the digest of a tree."""
        keys = sorted(f"{row.key}={row.digest}@{row.seq}" for row in self.keys)
        parts = (hashlib.sha256(log_bytes(self.uid, self.events)), hashlib.sha256("\0".join(keys).encode()))
        return f"{self.uid} {' '.join(part.hexdigest() for part in parts)}\n"


def moved_tree_digest(logs: Sequence[MovingLog]) -> str:
    """Return the digest of a tree of runs."""
    return hashlib.sha256("".join(sorted(log.line for log in logs)).encode()).hexdigest()


def last_event(events: Sequence[StoredEvent]) -> e.AnyEvent | None:
    """Return the last event of a log."""
    return e.decode(events[-1].body) if events else None


def log_before_move(uid: str, events: Sequence[StoredEvent], keys: Sequence[KeyRow]) -> MovingLog:
    """Return a log as it was before its run was moved, if it was."""
    ends = isinstance(last_event(events), e.RunMoved)
    return MovingLog(RunUid(uid), events[:-1] if ends else events, keys)


def check_moved(bundle: CheckedBundle) -> None:
    """Check that the runs of a bundle were moved with it. Raises UsageError if not, Corrupt if it was changed."""
    manifest = bundle.manifest
    if not manifest.moved:
        raise UsageError(
            "The bundle was not made to move a run: the store that it comes from goes on with it.",
            hint="Make one with weft export RUN --move, or import it without --adopt and fork it.",
        )
    digest = moved_tree_digest([log_before_move(run.about.uid, run.events, keys_of(run)) for run in bundle.runs])
    if digest != manifest.moved or manifest.redacted:
        raise _changed_error(MANIFEST, "its runs are not those that were moved")
    for run in bundle.runs:
        _check_parent(run, manifest.root)
        last = last_event(run.events)
        named = last.digest if isinstance(last, e.RunMoved) else None
        over = isinstance(last, e.RunCompleted | e.RunFailedEvent | e.RunCancelledEvent | e.LetterDiscarded)
        if named != digest and (not over or run.about.uid == manifest.root):
            raise _changed_error(run_file(run.about.uid), "it does not end with this move")


def _check_parent(run: CheckedRun, root: str) -> None:
    """Check that a run tells its end to its parent in the bundle, and to no run of this store."""
    first = e.decode(run.events[0].body) if run.events else None
    parent = first.parent.uid if isinstance(first, e.RunStarted) and first.parent is not None else None
    expected = None if run.about.uid == root else run.about.parent
    if run.about.parent != expected or (first is not None and parent != expected):
        raise _changed_error(MANIFEST, f"{run.about.id} has another parent than its log says")


def keys_of(run: CheckedRun) -> list[KeyRow]:
    """Return the idempotency keys of a run in a bundle."""
    return [KeyRow(one.key, one.digest, Seq(one.seq)) for one in run.about.keys]


async def find_entry(holds: Holds, run_id: str, verb: str, digest: str) -> AuditEntry | None:
    """Return the entry of the audit table for a move or an adoption with this digest."""
    before = NEWEST
    while True:
        page = await holds.audit(run=run_id, before=before)  # type: ignore[arg-type]
        for entry in page:
            if entry.verb == verb and entry.details.get("digest") == digest:
                return entry
        if not page:
            return None
        before = page[-1].number


def _changed_error(entry: str, why: str) -> Corrupt:
    return Corrupt(
        f"The bundle cannot be adopted: its entry {entry!r}: {why}.",
        hint="Nothing was written. Export the run again: weft export RUN --move.",
        code="bundle.corrupt",
        entry=entry,
    )
