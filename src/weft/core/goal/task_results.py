"""Check the results of work items, and fail a step with its first item that fails for good. Pure.

This happens in the same decision as the end of the item. A result of the wrong type is a final failure.

Rules: docs/internals/goal.md#5-commands.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.items import Items
from weft.core.goal.outputs import BadOutput, is_deferred, read_outputs
from weft.core.goal.scripts import HostedGoals
from weft.core.goal.state import Place
from weft.core.run import tasks
from weft.core.run.children import cancelled_child
from weft.core.run.env import Env
from weft.core.run.style import AnyRun
from weft.errors import Failure

RETRY_AFTER = "retry_after_ms"
"""The failure attribute with the delay before the next attempt that the called service requested."""
RETRY_AFTER_MS_MAX = 24 * 3_600_000


def consequences(items: Items, program: HostedGoals, events: Sequence[e.AnyEvent], env: Env) -> Sequence[e.AnyEvent]:
    """Extend the events that the kernel has decided with their consequences for the step."""
    match events[-1]:
        case e.TaskSucceeded() as success:
            return (*events[:-1], *_check_success(items, program, success, env))
        case e.TaskFailed(retry_at=0) as failed:
            return (*events, *_step_failed(items, failed.task, failed.failure))
        case e.TaskFailed() as failed:
            return (_postpone(failed, env.now),)
        case e.WaitTimedOut() as late:
            failure = Failure(type="timed_out", message="timed_out", code="timed_out")
            return (*events, *_step_failed(items, late.wait, failure))
        case e.ChildEnded() as ended:
            return (*events, *_child_ended(items, program, ended, env))
        case e.TimerFired(timer=number) if number in items.state.deadlines:
            window = items.state.deadlines[number]
            return (e.DeadlinePassed(timer=number, step=window.step, name=window.fact),)
    return events


def decide_memo_hit(run: AnyRun, recall: c.RecallWork, _: Env) -> Sequence[e.AnyEvent]:
    """Complete a task with a memoized result of an earlier run, and record which run it came from."""
    report = c.ReportTaskSucceeded(recall.task, recall.attempt, recall.delivery, recall.output)
    success = tasks.decide_succeeded(run.state, report)
    return (e.WorkRecalled(task=recall.task, run_id=recall.run_id, at=recall.at), *success) if success else ()


def result_error(items: Items, program: HostedGoals, number: int, result: bytes, env: Env) -> str | None:
    """Return why an item cannot have this result."""
    place = items.state.places.get(number)
    if place is None or number in items.state.asks:
        return None
    bad = _find_error(items, program, place, result, env)
    return None if bad is None else bad.failure(place.step).message


def _check_success(items: Items, program: HostedGoals, success: e.TaskSucceeded, env: Env) -> Sequence[e.AnyEvent]:
    place = items.state.places.get(success.task)
    bad = _find_error(items, program, place, bytes(success.output), env)
    if bad is None or place is None:
        return (success,)
    failure = bad.failure(place.step)
    failed = e.TaskFailed(task=success.task, failure=failure, attempt=success.attempt)
    return (failed, *_step_failed(items, success.task, failure))


def _find_error(items: Items, program: HostedGoals, place: Place | None, result: bytes, env: Env) -> BadOutput | None:
    """Return the error in a result, if it can be checked now. Results of steps that are over are not checked."""
    if place is None or items.state.steps[place.step].status != "active":
        return None
    assert items.flow is not None
    shape = items.flow.steps[place.step].shape
    if is_deferred(shape, result):
        return None
    try:
        outputs = read_outputs(shape, result, program.reader, env)
    except BadOutput as bad:
        return bad
    if not items.state.steps[place.step].fan_out:
        items.flow.checked[place.step] = outputs
    return None


def _postpone(event: e.TaskFailed, now: int) -> e.TaskFailed:
    """Postpone the retry by the delay that the called service requested."""
    requested = event.failure.attributes.get(RETRY_AFTER)
    if not isinstance(requested, int | float) or requested <= 0:
        return event
    return msgspec.structs.replace(event, retry_at=max(event.retry_at, now + min(int(requested), RETRY_AFTER_MS_MAX)))


def _step_failed(items: Items, number: int, failure: Failure) -> Sequence[e.StepFailedEvent]:
    """Fail the step with the first of its items that fails for good."""
    place = items.state.places.get(number)
    if place is None or items.state.steps[place.step].status != "active":
        return ()
    return (e.StepFailedEvent(step=place.step, failure=msgspec.structs.replace(failure, step=place.step)),)


def _child_ended(items: Items, program: HostedGoals, ended: e.ChildEnded, env: Env) -> Sequence[e.StepFailedEvent]:
    """Return the failure of the step, if the child run did not complete or its output has the wrong type."""
    place = items.state.places.get(ended.child)
    if place is None:
        return ()
    if ended.status != "completed":
        cancelled = cancelled_child(items.state.children[ended.child])
        return _step_failed(items, ended.child, ended.failure or cancelled)
    bad = _find_error(items, program, place, bytes(ended.output), env)
    return () if bad is None else _step_failed(items, ended.child, bad.failure(place.step))
