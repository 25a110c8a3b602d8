"""Add the parts of an append besides its events: a snapshot, index rows, and the time until which the run waits."""

from __future__ import annotations

from typing import Protocol

from weft.core import events as e
from weft.core.effects import ArmTimer
from weft.core.ids import Millis, Seq, answer_key
from weft.core.machine import Machine
from weft.core.run.hook_events import HOOKED
from weft.core.run.state import FOLD
from weft.ports.definitions import VERSION_MARK
from weft.ports.store import NEVER, KeyRow, Resolved, Snapshot
from weft.runtime.programs import has_dead_letters, needs_definition
from weft.runtime.run.deliveries import ObservedRun, add_deliveries
from weft.runtime.run.draft import Draft, PendingCommand
from weft.runtime.run.driver import CodeDriver

DEAD_LETTERS = "weft.dead_letters"
"""The attribute of runs that have dead letters."""
ASKING = "weft.asking"
"""The attribute of runs that have open questions."""
FORKED_FROM = "weft.forked_from"
"""The attribute of forks: the uid of the original."""
_MARKING = (e.AttributesSet, e.FailureRaised, e.LetterDiscarded, e.RunRetried)
INDEXED: frozenset[type] = frozenset((*_MARKING, e.MessageAnswered, e.PatchAsked, e.RunPatched, *HOOKED))
"""Events that are found without reading the log, by an attribute of the run or by a key, or that hooks are told of."""
WAITS_MAX = 100
"""With more open waits than this, finding the earliest would slow down every append too much."""


class WaitingRun(Protocol):
    """A run that is about to commit, and may only wait afterwards."""

    machine: Machine
    driver: CodeDriver | None
    mailbox: list[PendingCommand]
    drafts: list[Draft]
    fetching: bool
    idle_until: Millis | None
    snapshot_bytes: int
    tail_bytes: int


def add_snapshot(run: WaitingRun, draft: Draft) -> None:
    """Add a snapshot to a draft. Called when the log since the last one has grown as large as a snapshot."""
    state = run.machine.state
    if state.over:
        return
    body = run.machine.snapshot()
    draft.snapshot = Snapshot(Seq(state.seq), FOLD, body)
    run.snapshot_bytes = len(body)
    run.tail_bytes = -draft.size_bytes


def record_idle(run: WaitingRun, draft: Draft) -> None:
    """Record on the row until when the run only waits, if that changes, so that no other host loads it before.

    Nothing changes for a run that has tasks in flight, if its row says so already. Nobody here knows what a run does
    next whose code is not here.
    """
    if run.machine.state.over:
        return
    busy = (
        run.drafts
        or run.mailbox
        or run.fetching
        or (run.machine.state.asked and run.machine.tries())
        or (run.driver.missing_blobs if run.driver is not None else run.machine.style.has_code)
    )
    until = None if busy else _idle_until(run.machine)
    if until != run.idle_until:
        draft.idle_until = run.idle_until = until


def _idle_until(machine: Machine) -> Millis | None:
    """Return when the run next does something on its own. None if it has tasks in flight, or too many waits."""
    state = machine.state
    if state.tasks:
        return None
    has_others = bool(state.asks or state.children or state.due or state.asked)
    if not has_others and len(state.timers) + len(state.waits) <= WAITS_MAX:
        due = min(state.timers.values(), default=NEVER)
        for wait in state.waits.values():
            if wait.due and wait.due < due:
                due = Millis(wait.due)
        return Millis(due)
    if len(state.timers) + len(state.waits) + len(state.asks) + len(state.children) > WAITS_MAX:
        return None
    dues = [effect.due for effect in machine.outstanding() if isinstance(effect, ArmTimer)]
    return Millis(min(dues, default=NEVER))


def index_event(run: ObservedRun, draft: Draft, event: e.AnyEvent) -> None:
    """Make the run findable by an event that was just recorded, by an attribute of its row or by a key.

    Also start the deliveries of the event, if hooks want it.
    """
    machine = run.machine
    if run.ports.hooks.hooks and type(event) in HOOKED:
        add_deliveries(run, draft, event)
    if isinstance(event, _MARKING):
        draft.attributes = {**(draft.attributes or {}), **_row_attributes(machine, event)}
    elif isinstance(event, e.RunPatched):
        draft.resolved = Resolved(machine.state.version, machine.style.name)
        draft.attributes = {**(draft.attributes or {}), **version_marks(machine)}
    elif isinstance(event, e.PatchAsked):
        draft.attributes = {**(draft.attributes or {}), **version_marks(machine)}
    elif isinstance(event, e.MessageAnswered) and not event.repeated:
        draft.keys += (KeyRow(answer_key(event.message), "", Seq(machine.state.seq)),)


def version_marks(machine: Machine) -> dict[str, object]:
    """Return the attributes with which a patched graph run names the versions in its log, so that they are kept.

    A patch that waits names its version too.
    """
    if not needs_definition(machine.style.name):
        return {}
    state = machine.state
    versions = {version for one in state.revisions for version in (one.base, one.version)}
    versions |= {one.event.version for one in state.asked.values() if one.event.version}
    return {f"{VERSION_MARK}{version}": True for version in sorted(versions)}


def _row_attributes(machine: Machine, event: e.AnyEvent) -> dict[str, object]:
    """Return the attributes that this event sets on the run's row."""
    if isinstance(event, e.AttributesSet):
        return dict(event.attributes)
    return {DEAD_LETTERS: has_dead_letters(machine)}
