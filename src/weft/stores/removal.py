"""Judge whether a tree of runs may be deleted, by the rules of every store. Pure.

A store reads the facts in the transaction that marks the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.core.ids import Millis, RunId, RunUid
from weft.ports.retention import AuditEntry, DoomOutcome, DoomResult, DoomRule
from weft.ports.store import OVER_STATUSES

DOOMED_UID = "doomed:"
"""The prefix of the uid of a doomed row, with its number. Whatever names the run by its uid no longer finds it.

The number makes it unique: a run that was imported again has the uid of one that is still being deleted.
"""
RUNS_PER_CLEAR = 100
"""How many doomed runs one call of ``clear`` works on."""


class TreeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a tree that is to be deleted: the facts by which this is judged."""

    uid: RunUid
    id: RunId
    parent: RunUid | None
    status: str
    seq: int
    ended_at: Millis | None
    attributes: Mapping[str, Any]
    kept: bool
    named: bool
    """Whether an open run names it with the attribute ``DoomRule.named_by``."""


def judge_doom(tree: Sequence[TreeRun], rule: DoomRule) -> DoomResult:
    """Judge the deletion of a tree. Its root comes first; an empty tree is a run that does not exist."""
    if not tree:
        return DoomResult(outcome=DoomOutcome.UNKNOWN_RUN)
    if tree[0].parent is not None:
        return DoomResult(outcome=DoomOutcome.NOT_ROOT, run=tree[0].id)
    marked = [run for run in tree if rule.unsettled is not None and run.attributes.get(rule.unsettled)]
    checks = (
        (DoomOutcome.OPEN, (run for run in tree if run.status not in OVER_STATUSES)),
        (DoomOutcome.KEPT, (run for run in tree if run.kept)),
        (DoomOutcome.TOO_YOUNG, (run for run in tree if _is_younger(run, rule.ended_before))),
        (DoomOutcome.NAMED, (run for run in tree if run.named)),
        (DoomOutcome.UNSETTLED, (run for run in marked if rule.settled and run.status == "completed")),
    )
    for outcome, found in checks:
        culprit = next(found, None)
        if culprit is not None:
            return DoomResult(outcome=outcome, run=culprit.id)
    return DoomResult(
        outcome=DoomOutcome.DOOMED, runs=len(tree), events=sum(run.seq for run in tree), unsettled=len(marked)
    )


def with_counts(entry: AuditEntry, result: DoomResult) -> AuditEntry:
    """Return the entry with the numbers of what is deleted."""
    counts = {"runs": result.runs, "events": result.events, "dead_letters": result.unsettled}
    return msgspec.structs.replace(entry, details={**entry.details, **counts})


def with_sums(entry: AuditEntry, results: Sequence[DoomResult]) -> AuditEntry | None:
    """Return the entry of several deletions, with the numbers of all; None if nothing is deleted."""
    doomed = [result for result in results if result.outcome is DoomOutcome.DOOMED]
    counts = {
        "trees": len(doomed),
        "runs": sum(result.runs for result in doomed),
        "events": sum(result.events for result in doomed),
        "dead_letters": sum(result.unsettled for result in doomed),
    }
    return msgspec.structs.replace(entry, details={**entry.details, **counts}) if doomed else None


def _is_younger(run: TreeRun, ended_before: Millis | None) -> bool:
    return ended_before is not None and (run.ended_at is None or run.ended_at > ended_before)
