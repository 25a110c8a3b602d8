"""Work out what the end of a work item means for its step, in the same decision. Pure.

A result that does not have its declared type is a final failure. When an item fails for good, its step fails with it
at once.

Rules: docs/internals/goal.md#5-commands.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.items import Items
from weft.core.goal.outputs import BadOutput, is_deferred, outputs_of
from weft.core.goal.scripts import HostedGoals
from weft.core.goal.state import Place
from weft.core.run import lifecycle, tasks
from weft.core.run.env import Env
from weft.core.run.style import AnyRun
from weft.errors import Failure

RETRY_AFTER = "retry_after_ms"
"""An attribute of a failure: how long the called service asked us to wait before the next attempt."""
RETRY_AFTER_MS_MAX = 24 * 3_600_000


def consequences(items: Items, program: HostedGoals, events: Sequence[e.AnyEvent], env: Env) -> Sequence[e.AnyEvent]:
    """Extend the events that the kernel has decided with their consequences for the step."""
    match events[-1]:
        case e.TaskSucceeded() as success:
            return (*events[:-1], *_judged(items, program, success, env))
        case e.TaskFailed(retry_at=0) as failed:
            return (failed, *_step_failed(items, failed.task, failed.failure))
        case e.TaskFailed() as failed:
            return (_moved(failed, env.now),)
        case e.WaitTimedOut() as late:
            failure = Failure(type="timed_out", message="timed_out", code="timed_out")
            return (late, *_step_failed(items, late.wait, failure))
        case e.ChildEnded() as ended:
            return (ended, *_child_ended(items, program, ended, env))
        case e.TimerFired(timer=number) if number in items.state.deadlines:
            window = items.state.deadlines[number]
            return (e.DeadlinePassed(timer=number, step=window.step, name=window.fact),)
    return events


def decide_recalled(run: AnyRun, recall: c.RecallWork, _: Env) -> Sequence[e.AnyEvent]:
    """Take a result from an earlier run and record where it came from."""
    report = c.ReportTaskSucceeded(recall.task, recall.attempt, recall.delivery, recall.output)
    success = tasks.decide_succeeded(run.state, report)
    return (e.WorkRecalled(task=recall.task, run_id=recall.run_id, at=recall.at), *success) if success else ()


def _judged(items: Items, program: HostedGoals, success: e.TaskSucceeded, env: Env) -> Sequence[e.AnyEvent]:
    place = items.state.places.get(success.task)
    bad = _misfit(items, program, place, bytes(success.output), env)
    if bad is None or place is None:
        return (success,)
    failure = bad.failure(place.step)
    failed = e.TaskFailed(task=success.task, failure=failure, attempt=success.attempt)
    return (failed, *_step_failed(items, success.task, failure))


def _misfit(items: Items, program: HostedGoals, place: Place | None, result: bytes, env: Env) -> BadOutput | None:
    """Return what is wrong with a result, if it can be checked now. Results of steps that are over are not checked."""
    if place is None or items.state.steps[place.step].status != "active":
        return None
    assert items.flow is not None
    shape = items.flow.steps[place.step].shape
    if is_deferred(shape, result):
        return None
    try:
        found = outputs_of(shape, result, program.reader, env)
    except BadOutput as bad:
        return bad
    if not items.state.steps[place.step].fan_out:
        items.flow.judged[place.step] = found
    return None


def _moved(event: e.TaskFailed, now: int) -> e.TaskFailed:
    """Postpone the retry by the time that the called service asked for."""
    wish = event.failure.attributes.get(RETRY_AFTER)
    if not isinstance(wish, int | float) or wish <= 0:
        return event
    return msgspec.structs.replace(event, retry_at=max(event.retry_at, now + min(int(wish), RETRY_AFTER_MS_MAX)))


def _step_failed(items: Items, number: int, failure: Failure) -> Sequence[e.StepFailedEvent]:
    """Fail the step with the first of its items that fails for good."""
    place = items.state.places.get(number)
    if place is None or items.state.steps[place.step].status != "active":
        return ()
    return (e.StepFailedEvent(step=place.step, failure=msgspec.structs.replace(failure, step=place.step)),)


def _child_ended(items: Items, program: HostedGoals, ended: e.ChildEnded, env: Env) -> Sequence[e.StepFailedEvent]:
    """Settle the item whose task is this child run. A failure of the child is final."""
    place = items.state.places.get(ended.child)
    if place is None:
        return ()
    if ended.status != "completed":
        cancelled = lifecycle.cancelled_child(items.state.children[ended.child])
        return _step_failed(items, ended.child, ended.failure or cancelled)
    bad = _misfit(items, program, place, bytes(ended.output), env)
    return () if bad is None else _step_failed(items, ended.child, bad.failure(place.step))
