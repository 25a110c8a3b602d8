"""Decide the commands that every run has. The table in ``statuses`` says which status refuses which command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.run import (
    accepted_work,
    asked_patches,
    budget,
    by_hand,
    lifecycle,
    messages,
    moves,
    questions,
    tasks,
    timers,
    undo,
    withheld,
)
from weft.core.run.env import Env
from weft.core.run.statuses import permits
from weft.core.run.style import AnyRun
from weft.errors import Refused


def _decide_start(run: AnyRun, command: c.StartRun, env: Env) -> Sequence[e.AnyEvent]:
    """Start the run. A second start has no effect."""
    if run.state.started:
        return ()
    if command.budget is not None and not command.refused:
        budget.check_currency(command.currency, command.budget)
    began = run.style.begin(command, env)
    return began if command.budget is None or command.refused else (*began, budget.set_budget(command))


def _decide_cancel(run: AnyRun, command: c.CancelRun, _: Env) -> Sequence[e.AnyEvent]:
    """Request a cancel from the code, once. Without code, in a held run or with ``force``, end the run at once."""
    state = run.state
    if not permits(state, command) or state.ended:
        return ()
    requested = (e.CancelRequested(reason=command.reason, by=command.by),) if state.cancelled is None else ()
    if run.style.has_code and not command.force and state.status != "held":
        return requested
    return (*requested, *run.style.cancel_open(), e.RunEnding())


def _decide_pause(run: AnyRun, command: c.PauseRun, _: Env) -> Sequence[e.AnyEvent]:
    """Pause the run: no new work is dispatched, but results are still recorded."""
    return (e.RunPaused(reason=command.reason, by=command.by),) if permits(run.state, command) else ()


def _decide_resume(run: AnyRun, command: c.ResumeRun, _: Env) -> Sequence[e.AnyEvent]:
    return (e.RunResumed(reason=command.reason, by=command.by),) if permits(run.state, command) else ()


def _decide_hold(run: AnyRun, command: c.HoldRun, _: Env) -> Sequence[e.AnyEvent]:
    if not permits(run.state, command):
        return ()
    return (e.RunHeld(code=command.code, message=command.message, location=command.location),)


def _decide_retry(run: AnyRun, command: c.RetryRun, env: Env) -> Sequence[e.AnyEvent]:
    state, style = run.state, run.style
    lifecycle.check_retry(state, command.start, style.retried_from)
    wrong = [why for place in command.approved if (why := style.no_work_at(place))]
    if wrong:
        hint = f"To see its places: weft show {state.run_id}"
        raise Refused(f"{state.run_id} cannot be retried like this: {'; '.join(wrong)}.", hint=hint)
    if state.undone and not style.repeats_undone:
        raise undo.already_undone(state)
    said = {"approved": command.approved, "reason": command.reason, "by": command.by}
    return [
        msgspec.structs.replace(event, **said) if isinstance(event, e.RunRetried) else event
        for event in style.retry(command, env)
    ]


def _decide_timer(run: AnyRun, command: c.FireTimer, env: Env) -> Sequence[e.AnyEvent]:
    """Decide a timer that fired. The deadline of a run without code ends the run at once."""
    state = run.state
    if command.entry in state.accepted:
        return accepted_work.decide_unanswered(state, command.entry, run.style.unanswered, env.now)
    if command.entry in state.asked:
        return asked_patches.decide_patch_timer(state, command, env)
    decided = timers.decide_timer(state, command, env)
    if run.style.has_code or not decided or not isinstance(decided[0], e.RunTimedOut):
        return decided
    return (*decided, *run.style.cancel_open(), e.RunEnding(failure=lifecycle.deadline_failure(state)))


def _decide_message(run: AnyRun, command: c.DeliverMessage, _: Env) -> Sequence[e.AnyEvent]:
    return messages.decide_message(run.state, command)


def _decide_ask(run: AnyRun, command: c.DecideAsk, env: Env) -> Sequence[e.AnyEvent]:
    review = asked_patches.find_review(run.state, command.ask)
    if review is not None:
        return asked_patches.decide_review_answer(questions.decide_ask(run.state, command, review, env))
    answer = questions.decide_ask(run.state, command, run.style.question(command.ask), env)
    return withheld.decide_confirmed(run.state, answer)


def _decide_child_ended(run: AnyRun, command: c.ReportChildEnded, _: Env) -> Sequence[e.AnyEvent]:
    if command.child not in run.state.children:
        return ()
    return (e.ChildEnded(child=command.child, status=command.status, output=command.output, failure=command.failure),)


Decide = Callable[[AnyRun, Any, Env], Sequence[e.AnyEvent]]
DECIDE: dict[type, Decide] = {
    c.StartRun: _decide_start,
    c.ReportTaskSucceeded: lambda run, report, _: tasks.decide_succeeded(run.state, report),
    c.ReportTaskFailed: lambda run, report, env: tasks.decide_failed(run.state, report, env.now),
    c.ReportTaskLost: lambda run, report, env: tasks.decide_lost(run.state, report, env.now),
    c.FireTimer: _decide_timer,
    c.DeliverMessage: _decide_message,
    c.DecideAsk: _decide_ask,
    c.NoteTold: lambda run, command, _: questions.decide_notified(run.state, command),
    c.ReportChildEnded: _decide_child_ended,
    c.CancelRun: _decide_cancel,
    c.PauseRun: _decide_pause,
    c.ResumeRun: _decide_resume,
    c.HoldRun: _decide_hold,
    c.RetryRun: _decide_retry,
    c.RaiseBudget: lambda run, command, _: budget.decide_raise(run.state, command),
    c.NoteBudget: lambda run, command, _: budget.decide_warning(run.state, command),
    c.SetResult: by_hand.decide_set_result,
    c.PatchRun: asked_patches.decide_patch,
    c.WithdrawPatch: asked_patches.decide_withdrawn,
    c.MoveRun: moves.decide_move,
    c.AdoptRun: moves.decide_adopt,
}
DECIDE_ANSWERS: dict[type, Decide] = {
    c.ReportWorkAccepted: lambda run, report, env: accepted_work.decide_accepted(run.state, report, env.now),
    c.AnswerWork: lambda run, answer, env: accepted_work.decide_work_answer(run.state, answer, env.now),
}
"""Commands for asynchronous work, which only runs without code have."""
