"""From start to end: what a run's status allows, and how it ends.

A run that fails or is cancelled first lets go of what is open, waits for children it told to stop and for tasks whose
undo depends on their outcome, then undoes what was completed, newest first, and only then is over. First in the log
wins.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core.commands import CancelRun, ReportChildEnded, StartGoal, StartRun
from weft.core.events import (
    NULL,
    AnyEvent,
    CancelRequested,
    ChildStarted,
    EntryCancelled,
    Parent,
    RunCancelled,
    RunCompleted,
    RunEnding,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
)
from weft.core.ids import EntryId
from weft.core.run import undo
from weft.core.run.questions import STARTED_BY
from weft.core.run.state import State
from weft.core.run.statuses import finished, refuse_unless
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
    return (started, RunFailed(failure=never_began(failure, command.run_id), never_begun=True))


def decide_cancel(state: State, command: CancelRun) -> Sequence[AnyEvent]:
    """The code is told, once. A held run has no code to tell, and ``force`` does not ask it: the run's end begins."""
    if state.over:
        raise finished(state, "there is nothing to cancel")
    if state.ended:
        return ()
    requested = (CancelRequested(reason=command.reason),) if state.cancelled is None else ()
    if state.status == "held" or command.force:
        return (*requested, *let_go(state), RunEnding())
    return requested


def decide_pause(state: State) -> Sequence[AnyEvent]:
    """No new work from here on; facts are still recorded."""
    if state.over:
        raise finished(state, "there is nothing to pause")
    if state.status == "paused":
        return ()
    refuse_unless(state.status == "running", state, "paused")
    return (RunPaused(),)


def decide_resume(state: State) -> Sequence[AnyEvent]:
    """A paused or held run goes on."""
    if state.over:
        raise finished(state, "there is nothing to resume")
    if state.status == "running":
        return ()
    refuse_unless(state.status in ("paused", "held"), state, "resumed")
    return (RunResumed(),)


def let_go(state: State) -> list[EntryCancelled]:
    """Nobody waits any more for what is open: tasks, timers, waits, questions and children are told."""
    numbers = sorted({*state.tasks, *state.timers, *state.waits, *state.asks, *state.children})
    events: list[EntryCancelled] = []
    for number in numbers:
        child = state.children.get(number)
        if child is not None and child.cancelled:
            continue
        task = state.tasks.get(number)
        if task is not None and (task.draining or task.undo_of):
            continue
        events.append(EntryCancelled(entry=EntryId(number), child=child.uid if child is not None else ""))
    return events


def end_of_run(state: State, failure: Failure | None) -> list[AnyEvent]:
    """The code is over without a result: what it left open is let go, then the run ends by itself (``follow``)."""
    return [*let_go(state), RunEnding(failure=failure)]


def may_undo(state: State) -> bool:
    """Whether all that could still change what must be undone has ended."""
    stopping = any(child.cancelled for child in state.children.values())
    return state.ended and not (state.over or state.tasks or stopping)


def follow(state: State) -> Sequence[AnyEvent]:
    """After the code's end: undo newest first, one at a time, then the end."""
    if state.returned:
        return follow_dropped(state) or _completed(state)
    if not may_undo(state):
        return ()
    if state.undo:
        return (undo.scheduled(state.undo[-1]),)
    if state.cancelled is not None:
        return (RunCancelled(reason=state.cancelled, not_undone=list(state.not_undone)),)
    if state.failure is None:
        return ()
    return (RunFailed(failure=state.failure, not_undone=list(state.not_undone)),)


def follow_dropped(state: State) -> Sequence[AnyEvent]:
    """While the run goes on: undo what was dropped, one at a time."""
    newest = undo.newest(state)
    return () if newest is None else (undo.scheduled(newest),)


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


def refuse_retry(state: State, wish: str = "tried again", *, held: bool = False) -> None:
    """Refuse to try a run again that has not failed (or is not held, where that will do), or that never began."""
    failure = state.failure
    if state.status == "failed" and failure is not None and failure.attributes.get(NEVER_BEGAN) == state.run_id:
        why = failure.message.rstrip(".")
        raise Refused(f"{state.run_id} never began, so there is nothing to try again: {why}.", hint=start_anew(state))
    if state.status == "failed" or (held and state.status == "held"):
        return
    refuse_unless(state.status != "held", state, wish)
    hint = start_anew(state) if state.over else f"What it waits for: weft explain {state.run_id}"
    raise Refused(f"{state.run_id} is {state.status}, so it cannot be {wish}.", hint=hint)


def follow_for_good(state: State) -> Sequence[AnyEvent]:
    """`follow`, in a style that cannot go on from work that was undone: the failure says of which run that is true."""
    events = follow(state)
    if not state.undone or not events or not isinstance(events[0], RunFailed):
        return events
    failure = events[0].failure
    told = msgspec.structs.replace(failure, attributes={**failure.attributes, UNDONE: state.run_id})
    return (msgspec.structs.replace(events[0], failure=told),)


def parent_report(state: State) -> ReportChildEnded | None:
    """What the parent of a run that is over hears of it."""
    if state.parent is None or not state.parent.entry:
        return None
    return ReportChildEnded(
        child=EntryId(state.parent.entry), status=state.status, output=state.output, failure=state.failure
    )


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


def evolve_started(state: State, event: RunStarted, at: int) -> None:
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
    state.started_at = at
    state.due = event.due
    state.scheduled_at = event.scheduled_at
    state.queue = event.queue
    if event.attributes:
        state.attributes = dict(event.attributes)


def evolve_ended(state: State, event: RunEnding) -> None:
    """The code is over: with a result, or with all that was dropped left for the run to undo."""
    state.ended = True
    state.held = None
    if event.output:
        state.returned = True
        state.output = event.output
        return
    state.failure = event.failure
    state.status = "rolling_back"
    undo.join_stack(state)


def evolve_over(state: State) -> None:
    """Nothing is open in a run that is over."""
    state.tasks = {}
    state.timers = {}
    state.waits = {}
    state.asks = {}
    state.children = {}
    state.messages = {}
    state.undo = []
    state.reversals = []
    state.undoing = 0
    state.held = None


def evolve_cancelled_entry(state: State, event: EntryCancelled, location: str) -> bool:
    """Close what is open under this number; True: it is gone now, not just draining."""
    number = event.entry
    task = state.tasks.get(number)
    if task is not None:
        if must_end(task) and task.due <= state.at:
            task.draining = True
            return False
        del state.tasks[number]
        if task.lost:
            remember_undo(state, number, task, NULL, location)  # a hand-out that was lost may have happened
        return True
    child = state.children.get(number)
    if child is not None:
        child.cancelled = True
        return False
    return any(table.pop(number, None) is not None for table in (state.timers, state.waits, state.asks))
