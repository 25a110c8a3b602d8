"""Judge starts of workflows that have a rule, by the open runs with the same slot. Pure.

A store reads the facts and carries out the verdict in one transaction, in which no other start with this slot happens.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from weft.core.ids import Millis, RunId, RunUid
from weft.core.start_rules import SINGLETON
from weft.ports.starts import RuledStart, StartAnswer, StartOutcome
from weft.ports.store import OPEN_STATUSES, PENDING, RunRow

_OPEN = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
OPEN_WITH_SLOT = f"slot = {{slot}} AND ended_at IS NULL AND status IN ({_OPEN})"
"""The condition for open runs with a slot, in SQL."""


class UsedId(msgspec.Struct, frozen=True):
    """The run that took a start whose caller had chosen an id, and the digest of its input."""

    uid: RunUid
    run_id: RunId
    digest: str


class StartFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a start is judged by."""

    open_runs: Sequence[RunRow]
    """The open runs with its slot, oldest first."""
    is_taken: bool
    """Whether another run has its id or uid."""
    stored: bytes | None
    """The stored rule of its workflow."""
    used: UsedId | None = None
    """The earlier start with its id that another run took."""


class StartVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a store does with a start. With ``CREATED``, it creates the run of the start."""

    outcome: StartOutcome
    uid: RunUid = RunUid("")
    """The run that takes the start, or is in its way."""
    run_id: RunId = RunId("")
    wake_at: Millis | UnsetType | None = UNSET
    """When that run begins now; None for at once."""
    replaces_input: bool = False
    """That run begins with the input of this start instead of its own."""
    adds_input: bool = False
    """That run begins with the input of this start too."""
    closes: RunRow | None = None
    """A batch without room for this start. It begins at once."""
    cancels: Sequence[RunRow] = ()
    """The runs that are replaced."""
    keeps_id: bool = False
    """The chosen id names this start from now on."""


def judge_start(start: RuledStart, facts: StartFacts) -> StartVerdict:
    """Judge a start. Ids come first: a start that is repeated under its id has the same answer."""
    used = facts.used
    if used is not None:
        outcome = StartOutcome.JOINED if used.digest == start.digest else StartOutcome.ID_REUSED
        return StartVerdict(outcome=outcome, uid=used.uid, run_id=used.run_id)
    if facts.is_taken:
        return StartVerdict(outcome=StartOutcome.ID_TAKEN)
    if start.stored is not None and start.stored != facts.stored:
        return StartVerdict(outcome=StartOutcome.RULE_CHANGED)
    verdict = _judge_by_rule(start, facts.open_runs)
    # The id of a new singleton is that of its run. A run of several starts is not found by the input of one of them.
    is_shared = verdict.outcome is StartOutcome.JOINED or start.rule.kind != "singleton"
    keeps_id = start.chosen and is_shared and verdict.outcome is not StartOutcome.OPEN
    return msgspec.structs.replace(verdict, keeps_id=True) if keeps_id else verdict


def _judge_by_rule(start: RuledStart, open_runs: Sequence[RunRow]) -> StartVerdict:
    if start.rule.kind == "singleton":
        return _judge_singleton(start, open_runs)
    waiting = [run for run in open_runs if _has_not_begun(run)]
    if not waiting:
        return _created_verdict(start)
    return _judge_debounced(start, waiting[-1]) if start.rule.kind == "debounce" else _judge_batched(start, waiting[-1])


def _judge_singleton(start: RuledStart, open_runs: Sequence[RunRow]) -> StartVerdict:
    if not open_runs or start.rule.then == "replace":
        return _created_verdict(start, cancels=open_runs)
    newest = open_runs[-1]
    outcome = StartOutcome.JOINED if start.rule.then == "attach" else StartOutcome.OPEN
    return StartVerdict(outcome=outcome, uid=newest.uid, run_id=newest.id)


def _judge_debounced(start: RuledStart, waiting: RunRow) -> StartVerdict:
    rule, now = start.rule, start.new.created_at
    wake_at: Millis | None = None
    if waiting.wake_at is not None:  # otherwise it was told to begin at once
        latest = waiting.created_at + rule.at_most_ms if rule.at_most_ms else now + rule.quiet_ms
        wake_at = Millis(min(now + rule.quiet_ms, latest))
    return _joined_verdict(waiting, wake_at, replaces_input=True)


def _judge_batched(start: RuledStart, waiting: RunRow) -> StartVerdict:
    inputs = waiting.inputs + start.new.inputs
    if inputs > start.rule.size:
        return _created_verdict(start, closes=waiting)
    wake_at = None if inputs == start.rule.size else waiting.wake_at
    if wake_at is not None:  # the clock may have been set back since the first start
        wake_at = min(wake_at, Millis(start.new.created_at + start.rule.wait_ms))
    return _joined_verdict(waiting, wake_at, adds_input=True)


def _has_not_begun(run: RunRow) -> bool:
    """Return whether no host has ever claimed a run, so that its start may still change."""
    return run.status == PENDING and run.epoch == 0 and run.owner is None


def is_singleton(slot: str | None) -> bool:
    """Return whether only one run with this slot may be open."""
    return slot is not None and slot.startswith(SINGLETON)


def start_answer(verdict: StartVerdict) -> StartAnswer:
    """Return what the caller is told about a start that was carried out."""
    replaced = [run.id for run in verdict.cancels]
    return StartAnswer(outcome=verdict.outcome, uid=verdict.uid, id=verdict.run_id, replaced=replaced)


def _created_verdict(
    start: RuledStart, *, closes: RunRow | None = None, cancels: Sequence[RunRow] = ()
) -> StartVerdict:
    new = start.new
    return StartVerdict(outcome=StartOutcome.CREATED, uid=new.uid, run_id=new.id, closes=closes, cancels=cancels)


def _joined_verdict(
    run: RunRow, wake_at: Millis | None, *, replaces_input: bool = False, adds_input: bool = False
) -> StartVerdict:
    return StartVerdict(
        outcome=StartOutcome.JOINED,
        uid=run.uid,
        run_id=run.id,
        wake_at=wake_at,
        replaces_input=replaces_input,
        adds_input=adds_input,
    )
