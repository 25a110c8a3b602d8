"""Start, end and retry a run. Pure.

A run that fails or is cancelled ends in three stages. First it cancels what is open, and waits for cancelled children
and for tasks whose undo depends on their outcome. Then it undoes completed tasks, newest first. Then it is over. If
several events could end the run, the first in the log counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core.commands import RetryRun, StartRun
from weft.core.events import (
    NULL,
    AnyEvent,
    EntryCancelled,
    RunCancelledEvent,
    RunCompleted,
    RunEnding,
    RunFailedEvent,
    RunStarted,
)
from weft.core.ids import EntryId
from weft.core.run.env import Env
from weft.core.run.state import State, Status
from weft.core.run.statuses import ALLOWED, StatusRule, not_possible
from weft.core.run.style import AnyRun
from weft.core.run.tasks import must_drain_task, remember_undo
from weft.core.run.undo import follow_dropped, has_dropped
from weft.core.run_rules import RunRules
from weft.errors import Failure, Refused

UNDONE = "undone"
"""The failure attribute that names the run whose completed work was undone, so that it cannot be retried."""
NEVER_BEGAN = "never_began"
"""The failure attribute that names the run whose start was not_possible, so that it cannot be retried."""


def decide_start(state: State, command: StartRun, now: int) -> Sequence[AnyEvent]:
    """Return the first event of a run. A second start has no effect."""
    if state.started:
        return ()
    started = RunStarted(
        run_id=command.run_id,
        line=state.uid,
        workflow=command.workflow,
        input=command.input,
        version=command.version,
        style=command.style or "code",
        parent=command.parent,
        due=_run_deadline(command, now) if command.timeout_ms or command.rules is not None else 0,
        attributes=command.attributes,
        scheduled_at=command.scheduled_at,
        defaults=command.defaults,
        queue=command.queue,
        root=command.root,
        trace=command.trace,
        schedule=command.schedule,
        tag=command.tag,
        review=command.review,
        priority=command.priority,
        budgets=command.budgets,
        currency=command.currency,
        rules=command.rules,
    )
    if command.rules is not None:
        command = _check_rules(command, command.rules)
    if not command.refused:
        return (started,)
    kind = "IdTaken" if command.refused_as == "run.id_taken" else command.refused_as
    failure = Failure(type=kind, message=command.refused, code=command.refused_as)
    return (started, RunFailedEvent(failure=mark_never_began(failure, command.run_id), never_begun=True))


def _run_deadline(command: StartRun, now: int) -> int:
    """Return when a run is over at the latest; 0 for no such time."""
    deadline = command.rules.deadline if command.rules is not None else 0
    by_timeout = now + command.timeout_ms if command.timeout_ms else 0
    return min(deadline, by_timeout) if deadline and by_timeout else deadline or by_timeout


def _check_rules(command: StartRun, rules: RunRules) -> StartRun:
    """Refuse a start whose rules only a graph can obey, if it starts something else."""
    if command.refused or command.style == "graph" or not rules.is_for_graphs:
        return command
    refused = f"{command.workflow} is no graph, so that it has neither transitions nor hops to limit"
    return msgspec.structs.replace(command, refused=refused, refused_as="value.bad_policy")


def cancel_open(state: State) -> list[EntryCancelled]:
    """Cancel everything open: tasks, timers, waits, questions and children. Draining tasks and undos continue."""
    numbers = sorted({*state.tasks, *state.timers, *state.waits, *state.asks, *state.children})
    events: list[EntryCancelled] = []
    for number in numbers:
        child = state.children.get(number)
        if child is not None and child.cancelled:
            continue
        task = state.tasks.get(number) or state.parked.get(number)
        if task is not None and (task.draining or task.undo_of):
            continue
        events.append(EntryCancelled(entry=EntryId(number), child=child.uid if child is not None else ""))
    return events


def begin_end(state: State, failure: Failure | None) -> list[AnyEvent]:
    """Return the events that cancel what is open and begin the end of a run without a result."""
    return [*cancel_open(state), RunEnding(failure=failure)]


def deadline_failure(state: State) -> Failure:
    """Return the failure of a run without code whose deadline passed."""
    return Failure(type="deadline", message=f"{state.run_id} did not end before its deadline", code="deadline")


def follow_end(run: AnyRun, env: Env) -> Sequence[AnyEvent]:
    """Return the next events after the code or the last token ended: one undo at a time, then the end of the run."""
    state = run.state
    if state.returned:
        return follow_dropped(run, env) or _complete_unless_undoing(state)
    if state.over or state.tasks or any(child.cancelled for child in state.children.values()):
        return ()  # open work may still change what must be undone
    if state.undo:
        return run.style.undo(state.undo[-1], env)
    if state.cancelled is not None:
        return (RunCancelledEvent(reason=state.cancelled, not_undone=list(state.not_undone)),)
    if state.failure is None:
        return ()
    failure = state.failure
    if state.undone and not run.style.repeats_undone:
        failure = msgspec.structs.replace(failure, attributes={**failure.attributes, UNDONE: state.run_id})
    return (RunFailedEvent(failure=failure, not_undone=list(state.not_undone)),)


def _complete_unless_undoing(state: State) -> Sequence[AnyEvent]:
    if state.over or has_dropped(state):
        return ()
    return (RunCompleted(output=state.output, not_undone=list(state.not_undone)),)


def mark_never_began(failure: Failure, run_id: str) -> Failure:
    """Mark a failure as one of a run that never began, because its input or workflow was wrong."""
    return msgspec.structs.replace(failure, attributes={**failure.attributes, NEVER_BEGAN: run_id})


def new_run_hint(state: State) -> str:
    """Return the hint for a run that cannot be retried."""
    return f"Start a new run under another id: weft start {state.workflow} --input FILE"


def check_retry(state: State, place: str = "", from_place: frozenset[Status] = frozenset()) -> None:
    """Raise Refused if the run never began, or if its status does not allow a retry.

    ``from_place``: the statuses that allow a retry from a place. ``place`` is empty if this is none.
    """
    failure = state.failure
    if state.status == "failed" and failure is not None and failure.attributes.get(NEVER_BEGAN) == state.run_id:
        reason = failure.message.rstrip(".")
        raise Refused(f"{state.run_id} never began, so there is nothing to retry: {reason}.", hint=new_run_hint(state))
    rule = StatusRule(from_place, action=f"retried from {place[:60]}") if place else ALLOWED[RetryRun]
    if state.status in rule.acts:
        return
    if state.status == "held":
        raise not_possible(state, rule.action)
    hint = _retry_from_hint(state, place, from_place) if place else _retry_hint(state)
    raise Refused(f"{state.run_id} is {state.status}, so it cannot be {rule.action}.", hint=hint)


def _retry_hint(state: State) -> str:
    if state.over:
        return new_run_hint(state)
    return f"Only a failed run can be retried. To see what this one waits for: weft explain {state.run_id}"


def _retry_from_hint(state: State, place: str, statuses: frozenset[Status]) -> str:
    """Say how a run that cannot be retried from a place in its status gets there."""
    if state.status == "running" and "paused" in statuses:
        return f"Pause it first: weft pause {state.run_id}"
    possible = "" if state.over else f"This is possible when it is {' or '.join(sorted(statuses))}. "
    return f"{possible}To repeat the work in another run: weft fork {state.run_id} --before {place[:60]}"


def evolve_started(state: State, event: RunStarted) -> None:
    """Copy the start request into the new state. What most starts do not have is only copied if there is any."""
    state.started = True
    state.run_id = event.run_id
    state.line = event.line
    state.workflow = event.workflow
    state.version = event.version
    state.input = event.input
    state.defaults = event.defaults
    state.started_at = state.at
    if event.priority:
        state.priority = event.priority
    if event.root:
        state.root = event.root
    if event.trace:
        state.trace = event.trace
    if event.schedule:
        state.schedule = event.schedule
    if event.forked_from is not None:
        state.forked_from = event.forked_from
    if event.parent is not None:
        state.parent = event.parent
    if event.due:
        state.due = event.due
    if event.scheduled_at:
        state.scheduled_at = event.scheduled_at
    if event.queue:
        state.queue = event.queue
    if event.review:
        state.review = event.review
    if event.budgets:
        state.budgets, state.currency, state.accounted = list(event.budgets), event.currency, True
    if event.rules is not None:
        state.rules = event.rules
    if event.attributes:
        state.attributes = dict(event.attributes)


def evolve_returned(state: State, event: RunEnding) -> None:
    """Record the result of the code. Dropped work still has to be undone."""
    state.ended = True
    state.held = None
    state.returned = True
    state.output = event.output


def evolve_ending(state: State, failure: Failure | None) -> None:
    """Begin to roll the run back. It ends without a result once everything is undone."""
    state.ended = True
    state.held = None
    state.failure = failure
    state.status = "rolling_back"


def evolve_resumed(state: State) -> None:
    """Continue a paused or held run where it stopped."""
    state.held = None
    if state.ended and not state.returned:
        state.status = "rolling_back"
    else:
        state.status = "running" if state.cancelled is None else "cancelling"


def evolve_retried(state: State) -> None:
    """Continue a failed run, without a deadline. Tasks that were undone get new keys when they are performed again."""
    state.status = "running"
    state.ended = state.timed_out = False
    state.failure = state.held = state.cancelled = None
    state.due = 0
    state.retries += 1
    for place in state.undone:
        state.renewed[place] = state.renewed.get(place, 0) + 1
    state.undone, state.not_undone = [], []


def evolve_over(state: State) -> None:
    """Remove everything open from the state of a run that is over."""
    if state.tasks or state.parked or state.accepted:
        state.tasks, state.parked, state.accepted = {}, {}, {}
    if state.timers or state.waits or state.asks or state.children or state.messages:
        state.timers, state.waits, state.asks, state.children, state.messages = {}, {}, {}, {}, {}
    if state.undo or state.reversals or state.undoing or state.withheld:
        state.undo, state.reversals, state.undoing, state.withheld = [], [], 0, []
    if state.held is not None:
        state.held = None
    if state.asked or state.reviews:
        state.asked, state.reviews = {}, {}


def evolve_cancelled_entry(state: State, event: EntryCancelled, place: str) -> bool:
    """Close the open entry with this number. Returns False if it is still draining or stopping."""
    number = event.entry
    task = state.tasks.get(number)
    if task is not None:
        if must_drain_task(task) and task.due <= state.at:
            task.draining = True
            return False
        del state.tasks[number]
        if task.lost:
            remember_undo(state, number, task, NULL, place)  # a lost delivery may have been performed
        return True
    child = state.children.get(number)
    if child is not None:
        child.cancelled = True
        return False
    return any(table.pop(number, None) is not None for table in (state.timers, state.waits, state.asks))
