"""From start to end: how a run begins, ends, and is tried again.

A run that fails or is cancelled first lets go of what is open, waits for children it told to stop and for tasks whose
undo depends on their outcome, then undoes what was completed, newest first, and only then is over. First in the log
wins.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core.commands import ReportChildEnded, RetryRun, StartGoal, StartRun
from weft.core.events import (
    NULL,
    AnyEvent,
    ChildStarted,
    EntryCancelled,
    Parent,
    RunCancelledEvent,
    RunCompleted,
    RunEnding,
    RunFailedEvent,
    RunStarted,
)
from weft.core.ids import EntryId
from weft.core.run import undo
from weft.core.run.env import Env
from weft.core.run.questions import STARTED_BY
from weft.core.run.state import Child, State
from weft.core.run.statuses import ALLOWED, RETRY_FROM, refused
from weft.core.run.style import AnyRun
from weft.core.run.tasks import must_end, remember_undo
from weft.core.run.tree import depth_of, root_of
from weft.errors import Failure, Refused, RunUndone

UNDONE = "undone"
"""The attribute of a failure that names the run whose completed work was undone, so that it cannot be tried again."""
NEVER_BEGAN = "never_began"
"""The attribute of a failure that names the run that was refused at its start, so that it cannot be tried again."""


def decide_start(state: State, command: StartRun, now: int) -> Sequence[AnyEvent]:
    """The first event of a run; a second start decides nothing."""
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
        due=now + command.timeout_ms if command.timeout_ms else 0,
        attributes=command.attributes,
        scheduled_at=command.scheduled_at,
        defaults=command.defaults,
        queue=command.queue,
        root=command.root,
        trace=command.trace,
    )
    if not command.refused:
        return (started,)
    kind = "IdTaken" if command.refused_as == "run.id_taken" else command.refused_as
    failure = Failure(type=kind, message=command.refused, code=command.refused_as)
    return (started, RunFailedEvent(failure=never_began(failure, command.run_id), never_begun=True))


def let_go(state: State) -> list[EntryCancelled]:
    """Nobody waits any more for what is open: tasks, timers, waits, questions and children are told."""
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


def end_of_run(state: State, failure: Failure | None) -> list[AnyEvent]:
    """The run is over without a result: what is open is let go, then the run ends by itself (``follow``)."""
    return [*let_go(state), RunEnding(failure=failure)]


def follow(run: AnyRun, env: Env) -> Sequence[AnyEvent]:
    """After the end of the code (or the last token): undo newest first, one at a time, then the end."""
    state = run.state
    if state.returned:
        return follow_dropped(run, env) or _completed(state)
    if state.over or state.tasks or any(child.cancelled for child in state.children.values()):
        return ()  # what is still under way may change what must be undone
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


def follow_dropped(run: AnyRun, env: Env) -> Sequence[AnyEvent]:
    """While the run goes on: undo what was dropped, one at a time."""
    newest = undo.newest(run.state)
    return () if newest is None else run.style.undo(newest, env)


def _completed(state: State) -> Sequence[AnyEvent]:
    if state.over or undo.pending(state):
        return ()
    return (RunCompleted(output=state.output, not_undone=list(state.not_undone)),)


def undone(state: State) -> RunUndone:
    """The refusal to go on from work that was undone."""
    return RunUndone(
        f"The completed work of {state.run_id} was undone, so the run cannot go on from where it failed.",
        hint=f"Fork it: start it anew under another id: weft start {state.workflow} --input FILE",
        run_id=state.run_id,
    )


def never_began(failure: Failure, run_id: str) -> Failure:
    """The failure of a run that was refused at its start: its input or its workflow is wrong."""
    return msgspec.structs.replace(failure, attributes={**failure.attributes, NEVER_BEGAN: run_id})


def start_anew(state: State) -> str:
    """What to do instead of trying a run again."""
    return f"Start it anew, under another id: weft start {state.workflow} --input FILE"


def refuse_retry(state: State, *, from_place: bool = False) -> None:
    """Refuse to try a run again whose status does not allow it, or that never began."""
    failure = state.failure
    if state.status == "failed" and failure is not None and failure.attributes.get(NEVER_BEGAN) == state.run_id:
        why = failure.message.rstrip(".")
        raise Refused(f"{state.run_id} never began, so there is nothing to try again: {why}.", hint=start_anew(state))
    rule = RETRY_FROM if from_place else ALLOWED[RetryRun]
    if state.status in rule.acts:
        return
    if state.status == "held":
        raise refused(state, rule.wish)
    hint = start_anew(state) if state.over else f"What it waits for: weft explain {state.run_id}"
    raise Refused(f"{state.run_id} is {state.status}, so it cannot be {rule.wish}.", hint=hint)


def parent_report(state: State, parent: Parent) -> ReportChildEnded:
    """What the parent of a run that is over hears of it."""
    return ReportChildEnded(
        child=EntryId(parent.entry), status=state.status, output=state.output, failure=state.failure
    )


def child_cancelled(child: Child) -> Failure:
    """What a parent is told of a child that was cancelled."""
    return Failure(type="RunCancelled", message=f"{child.run_id} was cancelled", code="run.cancelled")


def child_start(state: State, event: ChildStarted, *, facts: bool = False) -> StartRun:
    """The first command of a child run that the last event started. ``facts``: of a goal run only these are wanted."""
    start = StartRun(
        run_id=event.run_id,
        workflow=event.workflow,
        input=event.input,
        version=event.version,
        style=event.style,
        timeout_ms=event.timeout_ms,
        parent=Parent(
            uid=state.uid,
            entry=state.seq,
            run_id=state.run_id,
            facts=facts,
            depth=depth_of(state) + 1,
        ),
        root=root_of(state),
        trace=state.trace,
        # Who started a run has started what it starts.
        attributes={name: value for name, value in state.attributes.items() if name == STARTED_BY},
    )
    if not bytes(event.plan):
        return start
    return StartGoal(**{field: getattr(start, field) for field in start.__struct_fields__}, plan=event.plan)


def evolve_started(state: State, event: RunStarted) -> None:
    """What was asked for, as it was asked."""
    state.started = True
    state.run_id = event.run_id
    state.line = event.line
    state.root = event.root
    state.trace = event.trace
    state.workflow = event.workflow
    state.version = event.version
    state.input = event.input
    state.defaults = event.defaults
    state.parent = event.parent
    state.started_at = state.at
    state.due = event.due
    state.scheduled_at = event.scheduled_at
    state.queue = event.queue
    if event.attributes:
        state.attributes = dict(event.attributes)


def evolve_returned(state: State, event: RunEnding) -> None:
    """The code is over with a result; what was dropped is still undone."""
    state.ended = True
    state.held = None
    state.returned = True
    state.output = event.output


def evolve_ending(state: State, failure: Failure | None) -> None:
    """The run ends without a result, once all that it has done is undone."""
    state.ended = True
    state.held = None
    state.failure = failure
    state.status = "rolling_back"


def evolve_resumed(state: State) -> None:
    """A paused or held run goes on with what it was doing."""
    state.held = None
    if state.ended and not state.returned:
        state.status = "rolling_back"
    else:
        state.status = "running" if state.cancelled is None else "cancelling"


def evolve_retried(state: State) -> None:
    """A failed run goes on. It has no deadline any more, and what was undone is other work when it is done again."""
    state.status = "running"
    state.ended = state.timed_out = False
    state.failure = state.held = state.cancelled = None
    state.due = 0
    state.retries += 1
    for place in state.undone:
        state.renewed[place] = state.renewed.get(place, 0) + 1
    state.undone, state.not_undone = [], []


def evolve_over(state: State) -> None:
    """Nothing is open in a run that is over."""
    state.tasks = {}
    state.parked = {}
    state.accepted = {}
    state.timers = {}
    state.waits = {}
    state.asks = {}
    state.children = {}
    state.messages = {}
    state.undo = []
    state.reversals = []
    state.undoing = 0
    state.held = None


def evolve_cancelled_entry(state: State, event: EntryCancelled, place: str) -> bool:
    """Close what is open under this number; True: it is gone now, not just draining."""
    number = event.entry
    task = state.tasks.get(number)
    if task is not None:
        if must_end(task) and task.due <= state.at:
            task.draining = True
            return False
        del state.tasks[number]
        if task.lost:
            remember_undo(state, number, task, NULL, place)  # a hand-out that was lost may have happened
        return True
    child = state.children.get(number)
    if child is not None:
        child.cancelled = True
        return False
    return any(table.pop(number, None) is not None for table in (state.timers, state.waits, state.asks))
