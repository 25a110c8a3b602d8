"""Turn the exception of a failed attempt into a report."""

from __future__ import annotations

import asyncio

import msgspec

from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.errors import Failure, OutcomeUnknown, StepTimedOut, UnknownStep
from weft.runtime.worker.flight import Flight
from weft.steps.failures import failure_of_step, read_safely, text_of
from weft.steps.http.failures import AnsweredLater
from weft.steps.raised import BodyRaised, ends_host
from weft.steps.task import PerformedElsewhere, StepBody

DENIED = "policy.denied"
"""The code of what the policy does not permit. A retry would not be permitted either."""

_get_running = asyncio._get_running_loop  # noqa: SLF001 - used by asyncio itself


class AttemptTimedOut(TimeoutError):
    """An attempt took longer than its policy allows. A body cannot raise it."""


def report_failure(effect: PerformTask, body: StepBody | None, error: BaseException) -> c.ReportTaskFailed:
    """Return the report of a task that failed."""
    if isinstance(error, PerformedElsewhere):
        failure = _in_doubt(effect, error, msgspec.structs.replace(error.failure, location=effect.location))
        return c.ReportTaskFailed(
            effect.task, effect.attempt, effect.delivery, failure, not error.final and failure.code != DENIED
        )
    failure = failure_of_step(error, step=effect.step, location=effect.location, attempts=effect.attempt)
    if isinstance(error, AttemptTimedOut):
        failure = _timed_out(failure, effect)
    failure = _in_doubt(effect, error, failure)
    retryable = body is not None and not body.is_final(error) and failure.code != DENIED
    wait_ms = read_safely(lambda: getattr(error, "retry_after_ms", None), None) or 0
    return c.ReportTaskFailed(effect.task, effect.attempt, effect.delivery, failure, retryable, wait_ms)


def _in_doubt(effect: PerformTask, error: BaseException, failure: Failure) -> Failure:
    """Return the failure of an attempt; an unknown outcome, if something irreversible may have been performed."""
    if effect.policy.effect != "irreversible" or not read_safely(lambda: getattr(error, "in_doubt", False), False):
        return failure
    return msgspec.structs.replace(failure, type="OutcomeUnknown", code=OutcomeUnknown.code)


def report_raised(flight: Flight, error: BaseException) -> c.ReportTaskFailed | c.ReportWorkAccepted:
    """Return the report of an attempt that raised. Any exception of the body is the step's failure."""
    effect = flight.effect
    if isinstance(error, AnsweredLater):
        return c.ReportWorkAccepted(effect.task, effect.attempt, effect.delivery)
    return report_failure(effect, flight.body, _actual_error(flight, error))


def _actual_error(flight: Flight, error: BaseException) -> BaseException:
    """Return the error that ended an attempt: the body's own exception, or a timeout."""
    actual = error.error if isinstance(error, BodyRaised) else error
    # A body may turn its cancellation into a TimeoutError without a text, as asyncio's own functions do.
    may_be_late = isinstance(actual, asyncio.CancelledError) or (
        isinstance(actual, TimeoutError) and not text_of(actual)
    )
    if not flight.timed_out or not may_be_late:
        return actual
    late = AttemptTimedOut()
    late.__cause__ = actual  # its traceback shows where the body was
    return late


def ends_attempt(flight: Flight, error: BaseException) -> bool:
    """Return whether this ends the attempt from outside: the host stopped it, or the process is ending."""
    if isinstance(error, asyncio.CancelledError):
        return flight.stopped
    if isinstance(error, GeneratorExit):
        # A discarded coroutine is closed from outside its task.
        return _get_running() is None or asyncio.current_task() is not flight.running
    return ends_host(error)


def unknown_step(step: str) -> UnknownStep:
    """Make the error for a step that this host does not have."""
    hint = "Import the module that has it before the engine starts."
    return UnknownStep(f'No step "{step}" is registered here.', hint=hint)


def report_timeout(effect: PerformTask) -> c.ReportTaskFailed:
    """Return the report of an attempt that another process has not ended in time."""
    failure = failure_of_step(AttemptTimedOut(), step=effect.step, location=effect.location, attempts=effect.attempt)
    return c.ReportTaskFailed(effect.task, effect.attempt, effect.delivery, _timed_out(failure, effect))


def _timed_out(failure: Failure, effect: PerformTask) -> Failure:
    unknown = effect.policy.effect == "irreversible"
    return msgspec.structs.replace(
        failure,
        type="OutcomeUnknown" if unknown else "TimedOut",
        message=f"{effect.step} took longer than {effect.policy.timeout_ms} ms",
        code=OutcomeUnknown.code if unknown else StepTimedOut.code,
        where="",
    )
