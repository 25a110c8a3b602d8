"""Apply the events that every run has: change the shared state and notify the style.

Every event ever released can be applied. The cost of an event does not grow with the size of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.core import events as e
from weft.core.run import (
    accepted_work,
    asked_patches,
    budget,
    by_hand,
    fork,
    lifecycle,
    messages,
    moves,
    questions,
    tasks,
    undo,
    withheld,
)
from weft.core.run.children import cancelled_child
from weft.core.run.state import Child, Held, Wait
from weft.core.run.style import AnyRun, Ended, Evolve, EvolveRows

# --- life --------------------------------------------------------------------------------------------------------


def _evolve_started(run: AnyRun, event: e.RunStarted) -> None:
    lifecycle.evolve_started(run.state, event)


def _evolve_cancel_requested(run: AnyRun, event: e.CancelRequested) -> None:
    state = run.state
    state.cancelled = event.reason
    state.cancelled_at = state.at
    state.held = None
    state.status = "cancelling"


def _evolve_run_timed_out(run: AnyRun, event: e.RunTimedOut) -> None:
    run.state.timed_out = True


def _evolve_ending(run: AnyRun, event: e.RunEnding) -> None:
    state = run.state
    if event.output:
        lifecycle.evolve_returned(state, event)
        return
    dropped = undo.take_dropped(state)
    lifecycle.evolve_ending(state, event.failure)
    run.style.join_undo(dropped)


def _evolve_completed(run: AnyRun, event: e.RunCompleted) -> None:
    run.state.output = event.output
    run.state.status = "completed"
    lifecycle.evolve_over(run.state)


def _evolve_failed(run: AnyRun, event: e.RunFailedEvent) -> None:
    run.state.failure = event.failure
    run.state.status = "failed"
    run.state.ended = True
    lifecycle.evolve_over(run.state)


def _evolve_cancelled(run: AnyRun, event: e.RunCancelledEvent) -> None:
    run.state.status = "cancelled"
    run.state.ended = True
    lifecycle.evolve_over(run.state)


def _evolve_paused(run: AnyRun, event: e.RunPaused) -> None:
    run.state.status = "paused"


def _evolve_resumed(run: AnyRun, event: e.RunResumed) -> None:
    lifecycle.evolve_resumed(run.state)


def _evolve_held(run: AnyRun, event: e.RunHeld) -> None:
    run.state.status = "held"
    run.state.held = Held(code=event.code, message=event.message, location=event.location, since=run.state.at)


def _evolve_retried(run: AnyRun, event: e.RunRetried) -> None:
    lifecycle.evolve_retried(run.state)
    run.state.earlier = {**run.state.earlier, **event.earlier}
    run.state.approvals = list(event.approved)


# --- tasks -------------------------------------------------------------------------------------------------------


def _evolve_task_scheduled(run: AnyRun, event: e.TaskScheduled) -> None:
    tasks.evolve_scheduled(run.state, event, event.input)
    run.style.opened(event)


def _evolve_task_succeeded(run: AnyRun, event: e.TaskSucceeded) -> None:
    state = run.state
    waited = event.task in state.parked and accepted_work.unpark(state, event.task)
    task = tasks.evolve_succeeded(run, event)
    if not task.undo_of:
        run.style.settled(Ended(event.task, "task", event.output, None, task, waited))


def _evolve_task_failed(run: AnyRun, event: e.TaskFailed) -> None:
    state = run.state
    waited = event.task in state.parked and accepted_work.unpark(state, event.task)
    task = tasks.evolve_failed(run, event)
    if task is None:
        run.style.retry_later(event.task, event.retry_at)
    elif not task.undo_of:
        run.style.settled(Ended(event.task, "task", failure=event.failure, task=task, waited=waited))


def _evolve_task_lost(run: AnyRun, event: e.TaskLost) -> None:
    tasks.evolve_lost(run.state, event)


def _evolve_work_accepted(run: AnyRun, event: e.WorkAccepted) -> None:
    accepted_work.evolve_accepted(run.state, event)


def _evolve_result_set(run: AnyRun, event: e.ResultSet) -> None:
    by_hand.evolve_result_set(run.state, event)


def _evolve_undo_scheduled(run: AnyRun, event: e.UndoScheduled) -> None:
    tasks.evolve_undo(run.state, event)


def _evolve_entry_cancelled(run: AnyRun, event: e.EntryCancelled) -> None:
    state = run.state
    task = state.tasks.get(event.entry) or state.parked.get(event.entry)
    if event.entry in state.parked:
        accepted_work.drop_parked(state, event.entry)
    else:
        lifecycle.evolve_cancelled_entry(state, event, run.location(event.entry))
    run.style.settled(Ended(event.entry, "stopped", task=task))


# --- timers, messages, questions ---------------------------------------------------------------------------------


def _evolve_timer_set(run: AnyRun, event: e.TimerSet) -> None:
    run.state.timers[run.state.seq] = event.due
    run.style.opened(event)


def _evolve_timer_fired(run: AnyRun, event: e.TimerFired) -> None:
    run.state.timers.pop(event.timer, None)
    run.style.settled(Ended(event.timer, "timer"))


def _evolve_message_received(run: AnyRun, event: e.MessageReceived) -> None:
    messages.evolve_message(run.state, event)


def _evolve_message_awaited(run: AnyRun, event: e.MessageAwaited) -> None:
    state = run.state
    state.waits[state.seq] = Wait(
        names=event.names, since=state.at, most=event.most, due=event.due, answer=event.answer
    )
    run.style.opened(event)


def _evolve_messages_taken(run: AnyRun, event: e.MessagesTaken) -> None:
    wait = run.state.waits.pop(event.wait)
    taken = messages.take_messages(run.state, event.ids, wait.names)
    run.style.settled(Ended(event.wait, "messages", messages=taken))


def _evolve_message_answered(run: AnyRun, event: e.MessageAnswered) -> None:
    run.state.requests.pop(event.message, None)


def _evolve_wait_timed_out(run: AnyRun, event: e.WaitTimedOut) -> None:
    state = run.state
    state.waits.pop(event.wait, None)
    state.asks.pop(event.wait, None)
    child = state.children.get(event.wait)
    if child is not None:
        child.cancelled = True
    run.style.settled(Ended(event.wait, "late"))


def _evolve_ask_opened(run: AnyRun, event: e.AskOpened) -> None:
    run.state.asks[run.state.seq] = questions.new_question(event, run.state.at)
    run.style.opened(event)


def _evolve_ask_answered(run: AnyRun, event: e.AskAnswered) -> None:
    if event.ask in run.state.reviews:
        asked_patches.evolve_answered(run.state, event)
        return
    answer = questions.evolve_answer(run.state, event)
    if answer is not None and event.ask in run.state.parked:
        withheld.evolve_confirmed(run.state, event.ask)
    elif answer is not None:
        run.style.settled(Ended(event.ask, "answer", answer))


def _evolve_ask_escalated(run: AnyRun, event: e.AskEscalated) -> None:
    questions.evolve_escalated(run.state, event)


def _evolve_ask_reminded(run: AnyRun, event: e.AskReminded) -> None:
    questions.evolve_reminded(run.state, event)


def _evolve_ask_told(run: AnyRun, event: e.AskTold) -> None:
    questions.evolve_notified(run.state, event)


# --- children ----------------------------------------------------------------------------------------------------


def _evolve_child_started(run: AnyRun, event: e.ChildStarted) -> None:
    state = run.state
    if event.refused is None:
        state.children[state.seq] = Child(
            uid=event.uid,
            run_id=event.run_id,
            workflow=event.workflow,
            since=state.at,
            due=event.due,
            awaited=event.awaited,
        )
    run.style.opened(event)


def _evolve_child_ended(run: AnyRun, event: e.ChildEnded) -> None:
    child = run.state.children.pop(event.child)
    failure = None
    if event.status != "completed":
        failure = event.failure or cancelled_child(child)
    run.style.settled(Ended(event.child, "child", event.output, failure, child=child, status=event.status))


EVOLVE: dict[type, Callable[[AnyRun, Any], None]] = {
    e.RunStarted: _evolve_started,
    e.CancelRequested: _evolve_cancel_requested,
    e.RunTimedOut: _evolve_run_timed_out,
    e.RunEnding: _evolve_ending,
    e.RunCompleted: _evolve_completed,
    e.RunFailedEvent: _evolve_failed,
    e.RunCancelledEvent: _evolve_cancelled,
    e.RunPaused: _evolve_paused,
    e.RunResumed: _evolve_resumed,
    e.RunHeld: _evolve_held,
    e.RunRetried: _evolve_retried,
    e.BudgetSet: lambda run, event: budget.evolve_budget_set(run.state, event),
    e.BudgetRaised: lambda run, event: budget.evolve_raised(run.state, event),
    e.BudgetWarned: lambda run, event: budget.evolve_warned(run.state, event),
    e.RunMoved: lambda run, event: moves.evolve_moved(run.state, event),
    e.RunAdopted: lambda run, _: moves.evolve_adopted(run.state),
    e.TaskScheduled: _evolve_task_scheduled,
    e.TaskSucceeded: _evolve_task_succeeded,
    e.TaskFailed: _evolve_task_failed,
    e.TaskLost: _evolve_task_lost,
    e.WorkAccepted: _evolve_work_accepted,
    e.ResultSet: _evolve_result_set,
    e.UndoScheduled: _evolve_undo_scheduled,
    e.EntryCancelled: _evolve_entry_cancelled,
    e.TimerSet: _evolve_timer_set,
    e.TimerFired: _evolve_timer_fired,
    e.MessageReceived: _evolve_message_received,
    e.MessageAwaited: _evolve_message_awaited,
    e.MessagesTaken: _evolve_messages_taken,
    e.MessageAnswered: _evolve_message_answered,
    e.WaitTimedOut: _evolve_wait_timed_out,
    e.AskOpened: _evolve_ask_opened,
    e.AskAnswered: _evolve_ask_answered,
    e.AskEscalated: _evolve_ask_escalated,
    e.AskReminded: _evolve_ask_reminded,
    e.AskTold: _evolve_ask_told,
    e.ChildStarted: _evolve_child_started,
    e.ChildEnded: _evolve_child_ended,
    e.RunForked: fork.evolve_forked,
    e.ResultsKnown: fork.evolve_known,
    e.RunEdited: fork.evolve_edited,
    e.TaskReleased: lambda run, event: withheld.evolve_released(run.state, event),
    e.PerformAsked: lambda run, event: withheld.evolve_perform_asked(run.state, event),
    e.PatchAsked: lambda run, event: asked_patches.evolve_patch_asked(run.state, event),
    e.PatchReviewAsked: lambda run, event: asked_patches.evolve_review_asked(run.state, event),
    e.PatchDropped: lambda run, event: asked_patches.evolve_dropped(run.state, event),
}


def with_style_rows(own: Mapping[type, Evolve]) -> EvolveRows:
    """Build the table of a style: for each event the kernel's row, followed by the style's own row."""
    return {kind: (EVOLVE.get(kind), own.get(kind)) for kind in {**EVOLVE, **own}}
