"""The effects of the events that every run has, and the effects of everything that is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.core import events as e
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, EndRun, PerformTask, StopTask
from weft.core.ids import CANCEL, EntryId
from weft.core.run import asked_patches, by_hand, questions, tasks, timers
from weft.core.run.state import State
from weft.core.run.style import AnyRun


def perform_open_task(run: AnyRun, number: int) -> PerformTask:
    """Return the effect that dispatches an open task."""
    return tasks.make_perform_task(run.state, number, run.state.tasks[number], run.location(number))


def outstanding(run: AnyRun) -> Sequence[AnyEffect]:
    """Return the effects of everything that is open."""
    state = run.state
    if state.over:
        return ()
    effects: list[AnyEffect] = []
    for number, task in state.tasks.items():
        if state.status != "paused" and not task.withheld:
            effects.append(perform_open_task(run, number))
    for number, due in state.timers.items():
        effects.append(ArmTimer(EntryId(number), due))
    for number, wait in state.waits.items():
        if wait.due:
            effects.append(ArmTimer(EntryId(number), wait.due, mailed=True))
    for number, ask in state.asks.items():
        effects += questions.arm_question(number, ask)
    for number, child in state.children.items():
        if child.due and not child.cancelled:
            effects.append(ArmTimer(EntryId(number), child.due, mailed=True))
    for number, task in state.tasks.items():
        if due := timers.task_due(task):
            effects.append(ArmTimer(EntryId(-number), due))
    for number, patch in state.asked.items():
        if patch.event.due:
            effects.append(ArmTimer(EntryId(number), patch.event.due))
    if state.due and timers.entry_due(state, CANCEL):
        effects.append(ArmTimer(CANCEL, state.due))
    return effects


def stop_removed(state: State) -> list[AnyEffect]:
    """Stop the tasks and timers that the last event removed. A number below zero is the deadline of a task."""
    effects: list[AnyEffect] = []
    for number in state.gone:
        if number > 0:
            effects.append(StopTask(EntryId(number)))
        effects.append(DisarmTimer(EntryId(number)))
    return effects


def dispatch_opened(run: AnyRun, _: e.AnyEvent) -> Sequence[AnyEffect]:
    """Dispatch the task that the last event opened, and arm its deadline."""
    number = run.state.seq
    task = run.state.tasks.get(number)
    if task is None or task.withheld or (task.again is not None and task.again.kept):
        return ()  # a person must approve it first, its result is known, or it is to be decided whether it is
    effect = tasks.make_perform_task(run.state, number, task, run.location(number))
    if not task.policy.deadline_ms:
        return (effect,)
    return (effect, ArmTimer(EntryId(-number), timers.task_due(task)))


def _stop_second_delivery(_: AnyRun, event: e.TaskSucceeded) -> Sequence[AnyEffect]:
    """Stop the current delivery of a task if an earlier delivery succeeded."""
    return (StopTask(event.task),) if event.earlier else ()


def _dispatch_again(run: AnyRun, event: e.TaskFailed | e.TaskLost) -> Sequence[AnyEffect]:
    """Dispatch the task again, or arm the timer of a parked task."""
    state = run.state
    if event.task in state.parked:
        return (ArmTimer(event.task, state.timers[event.task]),)
    if event.task not in state.tasks or state.status == "paused" or state.tasks[event.task].withheld:
        return ()
    return (perform_open_task(run, event.task),)


def _dispatch_released(run: AnyRun, event: e.TaskReleased) -> Sequence[AnyEffect]:
    if run.state.status == "paused":
        return ()
    due = timers.task_due(run.state.tasks[event.task])
    return (
        (perform_open_task(run, event.task), ArmTimer(EntryId(-event.task), due))
        if due
        else (perform_open_task(run, event.task),)
    )


def arm_opened(run: AnyRun, event: Any) -> Sequence[AnyEffect]:
    """Arm the timer of the entry that the event opened, if it has one."""
    if not event.due:
        return ()
    mailed = isinstance(event, e.MessageAwaited | e.ChildStarted)
    return (ArmTimer(EntryId(run.state.seq), event.due, mailed=mailed),)


def _stop_cancelled(run: AnyRun, event: e.EntryCancelled) -> Sequence[AnyEffect]:
    if event.entry in run.state.tasks or event.entry in run.state.parked:
        return ()
    return (StopTask(event.entry), DisarmTimer(event.entry))


def _rearm_question(run: AnyRun, event: e.AskAnswered | e.AskEscalated | e.AskReminded) -> Sequence[AnyEffect]:
    return questions.rearm_question(run.state, event)


def _dispatch_approved(run: AnyRun, event: e.AskAnswered) -> Sequence[AnyEffect]:
    """Arm or disarm the timer of the question. If it was about a task that is approved now, dispatch the task."""
    state = run.state
    task = state.tasks.get(event.ask)
    if event.ask in state.asked:
        return ()  # the timer is that of the patch
    if task is None or not event.approved:
        return questions.rearm_question(state, event)
    due = timers.task_due(task)
    deadline = (ArmTimer(EntryId(-event.ask), due),) if due else ()
    return deadline if state.status == "paused" else (perform_open_task(run, event.ask), *deadline)


def _dispatch_all_open(run: AnyRun, _: e.AnyEvent) -> Sequence[AnyEffect]:
    """Return the effects of everything open, because nothing was dispatched during a pause that this event may end."""
    return run.outstanding()


def _end_run(_: AnyRun, __: e.AnyEvent) -> Sequence[AnyEffect]:
    return (EndRun(),)


EFFECTS: dict[type, Callable[[AnyRun, Any], Sequence[AnyEffect]]] = {
    e.RunStarted: lambda _, event: (ArmTimer(CANCEL, event.due),) if event.due else (),
    e.TaskScheduled: dispatch_opened,
    e.UndoScheduled: dispatch_opened,
    e.TaskSucceeded: _stop_second_delivery,
    e.TaskFailed: _dispatch_again,
    e.ResultSet: by_hand.effects_of_set,
    e.TaskLost: _dispatch_again,
    e.WorkAccepted: lambda _, event: (ArmTimer(event.task, event.due),),
    e.TimerSet: arm_opened,
    e.MessageAwaited: arm_opened,
    e.ChildStarted: arm_opened,
    e.AskOpened: lambda run, _: questions.arm_new_question(run.state),
    e.MessagesTaken: lambda _, event: (DisarmTimer(event.wait),),
    e.AskAnswered: _dispatch_approved,
    e.AskEscalated: _rearm_question,
    e.AskReminded: _rearm_question,
    e.ChildEnded: lambda _, event: (DisarmTimer(event.child),),
    e.EntryCancelled: _stop_cancelled,
    e.TaskReleased: _dispatch_released,
    e.PatchAsked: asked_patches.arm,
    e.PatchDropped: asked_patches.disarm,
    e.RunResumed: _dispatch_all_open,
    e.CancelRequested: _dispatch_all_open,
    e.RunEnding: _dispatch_all_open,
    e.RunRetried: lambda run, event: (DisarmTimer(CANCEL), *map(StopTask, event.forced), *run.outstanding()),
    e.RunCompleted: _end_run,
    e.RunFailedEvent: _end_run,
    e.RunCancelledEvent: _end_run,
    e.RunMoved: _end_run,
    e.RunAdopted: _dispatch_all_open,
}
