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


def report_failure(effect: PerformTask, body: StepBody | None, error: BaseException) -> c.ReportTaskFailed:
    """Return the report of a task that failed."""
    if isinstance(error, PerformedElsewhere):
        failure = msgspec.structs.replace(error.failure, location=effect.location)
        return c.ReportTaskFailed(effect.task, effect.attempt, effect.delivery, failure, not error.final)
    failure = failure_of_step(error, step=effect.step, location=effect.location, attempts=effect.attempt)
    if isinstance(error, TimeoutError) and effect.policy.timeout_ms and not text_of(error):
        failure = _timed_out(failure, effect)
    if effect.policy.effect == "irreversible" and read_safely(lambda: getattr(error, "in_doubt", False), False):
        failure = msgspec.structs.replace(failure, type="OutcomeUnknown", code=OutcomeUnknown.code)
    retryable = body is not None and not body.is_final(error) and failure.code != DENIED
    wait_ms = read_safely(lambda: getattr(error, "retry_after_ms", None), None) or 0
    return c.ReportTaskFailed(effect.task, effect.attempt, effect.delivery, failure, retryable, wait_ms)


def report_raised(flight: Flight, error: BaseException) -> c.ReportTaskFailed | c.ReportWorkAccepted:
    """Return the report of an attempt that raised. Any exception of the body is the step's failure."""
    effect = flight.effect
    if isinstance(error, AnsweredLater):
        return c.ReportWorkAccepted(effect.task, effect.attempt, effect.delivery)
    return report_failure(effect, flight.body, _actual_error(flight, error))


def _actual_error(flight: Flight, error: BaseException) -> BaseException:
    """Return the error that ended an attempt: the body's own exception, or a timeout."""
    if isinstance(error, BodyRaised):
        return error.error
    if flight.timed_out and isinstance(error, asyncio.CancelledError):
        late = TimeoutError()
        late.__cause__ = error  # its traceback shows where the body was
        return late
    return error


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


def _timed_out(failure: Failure, effect: PerformTask) -> Failure:
    unknown = effect.policy.effect == "irreversible"
    return msgspec.structs.replace(
        failure,
        type="OutcomeUnknown" if unknown else "TimedOut",
        message=f"{effect.step} took longer than {effect.policy.timeout_ms} ms",
        code=OutcomeUnknown.code if unknown else StepTimedOut.code,
        where="",
    )
