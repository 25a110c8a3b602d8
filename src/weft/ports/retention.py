"""Deleting runs, keeping them from deletion, and the audit table that says who did either.

Deletion has two stages. ``doom`` judges a whole tree and marks its rows in one transaction: from then on none of its
runs is found, and their ids stay taken. ``clear`` deletes what belongs to doomed runs in small transactions, and then
their rows, which frees the ids. A process that dies in between leaves doomed rows; any later ``clear`` goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from weft.core.ids import HostId, Millis, RunId, RunUid

DOOMED = "doomed"
"""The status of a row that is being deleted. No caller ever sees it."""


NEWEST = 2**62
"""Above the number of every entry."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the audit table. It outlives the runs that it names."""

    at: Millis
    verb: str
    """``delete``, ``gc``, ``keep`` or ``keep_end``."""
    run: RunId
    uid: RunUid
    workflow: str
    by: str
    reason: str
    details: Mapping[str, Any] = {}
    """How much was deleted: ``runs``, ``events`` and open ``dead_letters``."""
    number: int = 0
    """Its number in the table, which the store gives it."""


class DoomRule(msgspec.Struct, frozen=True, kw_only=True):
    """What must hold of a tree before it is deleted, besides that all of it is over and no hold lies on it."""

    ended_before: Millis | None = None
    """The last of its runs must have ended at this time or before."""
    unsettled: str | None = None
    """The attribute of runs that have open dead letters. Such runs are counted."""
    settled: bool = False
    """No completed run of the tree may have the attribute."""
    named_by: str | None = None
    """An attribute that names another run by its uid. No open run may name a run of the tree with it."""
    dry_run: bool = False
    """Only judge. Nothing is written."""


class DoomOutcome(StrEnum):
    """The judgement on a deletion. Unless it is ``DOOMED``, nothing was written."""

    DOOMED = "doomed"
    UNKNOWN_RUN = "unknown_run"
    NOT_ROOT = "not_root"
    OPEN = "open"
    KEPT = "kept"
    TOO_YOUNG = "too_young"
    UNSETTLED = "unsettled"
    NAMED = "named"


class DoomResult(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement on a deletion, and the tree that it is about."""

    outcome: DoomOutcome
    run: RunId | None = None
    """The run because of which it was refused."""
    runs: int = 0
    events: int = 0
    unsettled: int = 0
    """How many of its runs have the attribute ``DoomRule.unsettled``."""


class Cleared(msgspec.Struct, frozen=True):
    """How much one call of ``clear`` deleted. Nothing is left once both are 0."""

    rows: int
    runs: int


class EndedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A search for roots that are over, oldest first. ``after`` is the cursor of the previous page."""

    status: str
    ended_before: Millis
    workflow: str | None = None
    without: Sequence[str] = ()
    """Workflows whose runs are left out."""
    id_prefix: str | None = None
    limit: int = 100
    after: str | None = None


class EndedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A root that is over."""

    uid: RunUid
    id: RunId
    workflow: str
    created_at: Millis
    ended_at: Millis


class EndedPage(msgspec.Struct, frozen=True):
    """One page of roots that are over. The last page has no ``cursor``."""

    runs: Sequence[EndedRun]
    cursor: str | None


class StoreSize(msgspec.Struct, frozen=True, kw_only=True):
    """How large a store is, and how much of it is new."""

    runs: int
    recent: int
    """How many of the runs were created since the time that was asked for."""
    size_bytes: int | None
    """None if the store cannot tell."""


class Retention(Protocol):
    """Deletes runs."""

    async def doom(self, uid: RunUid, rule: DoomRule, entry: AuditEntry | None = None) -> DoomResult:
        """Mark a root and all runs below it as doomed, if the rule allows it, and write the entry, in one transaction.

        The numbers of runs, events and unsettled runs are added to the details of the entry.
        """
        ...

    async def doom_each(
        self, uids: Sequence[RunUid], rule: DoomRule, entry: AuditEntry | None = None
    ) -> Sequence[DoomResult]:
        """Judge and mark several trees in one transaction, each on its own. Returns one result each.

        The entry is written in the same transaction if a tree was marked, with the numbers of all of them.
        """
        ...

    async def clear(self, *, limit: int) -> Cleared:
        """Delete up to ``limit`` rows of doomed runs, and the runs that have nothing left."""
        ...

    async def is_doomed(self, id: RunId) -> bool:
        """Return whether this id belongs to a run that is being deleted."""
        ...

    async def ended(self, query: EndedQuery) -> EndedPage:
        """Return a page of roots that are over, those that started first first."""
        ...

    async def clear_streams(self, *, ended_before: Millis, limit: int) -> int:
        """Delete the output of runs that ended at this time or before, about ``limit`` chunks. Returns how many."""
        ...

    async def shorten(self, uid: RunUid, upto: int, *, limit: int) -> int:
        """Delete up to ``limit`` events of a run with numbers up to this one. Returns how many.

        From the first call on, the log begins after that number, and its first event must hold the whole state. The
        caller repeats the call until nothing is left.
        """
        ...

    async def take_turn(self, host: HostId, *, now: Millis, lease_ms: int) -> bool:
        """Return whether this host may delete now. Only one host does at a time; its turn ends after ``lease_ms``."""
        ...

    async def size(self, *, since: Millis) -> StoreSize:
        """Return the size of the store, and how many runs were created since then."""
        ...


class Holds(Protocol):
    """Holds on trees, which keep them from deletion, and the audit table of holds and deletions."""

    async def add(self, uid: RunUid, entry: AuditEntry) -> bool:
        """Put a hold on the tree of this root. Returns False, with nothing written, if there was one or no such run."""
        ...

    async def end(self, uid: RunUid, entry: AuditEntry) -> bool:
        """End the hold on a tree. Returns False, with nothing written, if there was none."""
        ...

    async def record(self, entry: AuditEntry) -> None:
        """Add an entry to the audit table."""
        ...

    async def find(self, uids: Sequence[RunUid]) -> Mapping[RunUid, AuditEntry]:
        """Return the holds on the trees of these roots."""
        ...

    async def audit(self, *, run: RunId | None = None, before: int = NEWEST, limit: int = 100) -> Sequence[AuditEntry]:
        """Return entries of the audit table with numbers below ``before``, newest first.

        With ``run``, return those of the runs with this id.
        """
        ...
