"""What a bulk is for, what its dry run shows, and what it has done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.core.ids import Millis

MADE_MAX = 200
"""The most new runs that the result of a bulk names."""


class BulkFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that a bulk is for, as lists of runs are filtered."""

    workflow: str | None = None
    status: str | None = None
    since: Millis | None = None
    prefix: str | None = None
    """The beginning of their ids."""
    parent: str | None = None
    """The id of the run that started them."""
    where: Mapping[str, Any] = {}
    """Their attributes."""


class BulkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A verb, and the runs that it is for: these ids, or those that a filter finds."""

    verb: str
    ids: Sequence[str] = ()
    filter: BulkFilter = BulkFilter()
    options: Mapping[str, Any] = {}


class RefusedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that refuse a verb for the same reason."""

    code: str
    status: str
    """The status of these runs, if the run exists."""
    count: int
    example: str
    """One of the runs."""
    message: str
    """Why that one refuses."""


class BulkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The dry run of a bulk: what would happen to the runs as they stand. Nothing is changed."""

    verb: str
    matched: int
    would_apply: int
    unchanged: int
    """How many runs are already as the verb would leave them."""
    refused: Sequence[RefusedRuns]
    ids: Sequence[str]
    uids: Sequence[str]
    options: Mapping[str, Any] = {}
    expects: Mapping[str, str] = {}


class BulkRefusal(msgspec.Struct, frozen=True):
    """A run that refused the verb of a bulk."""

    run: str
    status: str
    code: str
    message: str


class BulkBatch(msgspec.Struct, frozen=True):
    """What one step of a bulk did: how many runs it went through, those that refused, and the runs that it made."""

    tried: int
    refusals: list[BulkRefusal]
    made: list[str] = []


class BulkResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a bulk: how many runs accepted the command, and why others refused it."""

    verb: str
    applied: int = 0
    refused: list[RefusedRuns] = []
    made: list[str] = []
    """The ids of new runs, such as forks, in the order of their originals: the first 200."""
    approved_by: list[str] = []
    """Who agreed, if the bulk was reviewed."""
    rejected: str = ""
    """Who did not agree, and why: nothing was done."""

    @property
    def tried(self) -> int:
        """Return how many runs the bulk has gone through."""
        return self.applied + sum(group.count for group in self.refused)

    def add(self, batch: BulkBatch) -> BulkResult:
        """Return the result with some more runs."""
        refused = group_refusals(batch.refusals, self.refused)
        applied = self.applied + batch.tried - len(batch.refusals)
        made = [*self.made, *batch.made][:MADE_MAX]
        return msgspec.structs.replace(self, applied=applied, refused=refused, made=made)


def group_refusals(refusals: Sequence[BulkRefusal], before: Sequence[RefusedRuns] = ()) -> list[RefusedRuns]:
    """Count refusals by code and status, the most frequent first."""
    groups = {(group.code, group.status): group for group in before}
    for one in refusals:
        known = groups.get((one.code, one.status))
        groups[one.code, one.status] = RefusedRuns(
            code=one.code,
            status=one.status,
            count=known.count + 1 if known is not None else 1,
            example=known.example if known is not None else one.run,
            message=known.message if known is not None else one.message,
        )
    return sorted(groups.values(), key=lambda group: (-group.count, group.code, group.status))
