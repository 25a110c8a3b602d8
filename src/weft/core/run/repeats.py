"""Schedule work again that was dispatched before: with the same key or a new one, or with its earlier result. Pure.

Whatever makes a run repeat work remembers it as ``Earlier``. When a style schedules the work, ``repeat_work`` and
``repeat_task`` complete the event. A task that needs approval is held back (``withheld``).

Rules: docs/internals/engine.md#rule-35.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec
from msgspec import Raw

from weft.core.events import AnyEvent, Earlier, Repetition, TaskFailed, TaskScheduled, TaskSucceeded
from weft.core.ids import EntryId
from weft.core.run.contracts import Act, judge_effect
from weft.core.run.state import OpenTask, State
from weft.errors import Failure, Refused

UNKNOWN = "step.outcome_unknown"


def digest_of_work(step: str, arguments: Raw) -> str:
    """Return a digest of a step and its input, as the log stores it."""
    return blake2b(step.encode() + b"\x1f" + bytes(arguments), digest_size=16).hexdigest()


def repeat_work(
    state: State, earlier: Earlier, place: str, event: TaskScheduled, digest: str = ""
) -> Sequence[AnyEvent]:
    """Return the events that schedule a task again. If the earlier result is kept, the task succeeds with it."""
    if _judge_repetition(earlier, event, digest) != "keep":
        return (repeat_task(state, earlier, place, event, digest),)
    kept = msgspec.structs.replace(event, again=Repetition(earlier.place, earlier.n, kept=True), undo=None)
    return (kept, TaskSucceeded(task=EntryId(state.seq + 1), output=earlier.output))


def repeat_task(state: State, earlier: Earlier, place: str, event: TaskScheduled, digest: str = "") -> TaskScheduled:
    """Return the event that schedules a task again, with its key and with a person's approval if it needs that.

    Args:
        state: The state of the run.
        earlier: The work that the task repeats. A result of it is not used.
        place: The location of the task.
        event: The event that schedules the task.
        digest: The digest of its step and input, as in ``Earlier``.
    """
    equal = _is_equal(earlier, digest)
    used = state.renewed.get(earlier.place, 0)
    n = earlier.n if equal else max(earlier.n, used) + 1
    if _judge_repetition(earlier, event, digest) != "ask":
        is_usual = place == earlier.place and n == used
        return event if is_usual else msgspec.structs.replace(event, again=Repetition(earlier.place, n))
    return msgspec.structs.replace(
        event, again=Repetition(earlier.place, n, confirm=_why_not_repeated(event.step, equal=equal))
    )


def find_equal(dropped: Sequence[Earlier], step: str, digest: str) -> Earlier | None:
    """Return the first dropped work with a result for this step and input."""
    return next((one for one in dropped if one.step == step and one.digest == digest and bytes(one.output)), None)


def repeat_elsewhere(
    state: State, dropped: Sequence[Earlier], place: str, event: TaskScheduled, digest: str
) -> Sequence[AnyEvent]:
    """Return the events of an irreversible task at a place without earlier work, if such work was dropped elsewhere.

    Its place may have been renamed. So the result of equal work is kept, and if there is none, people are asked.
    """
    equal = find_equal(dropped, event.step, digest)
    if equal is not None:
        return repeat_work(state, equal, place, event, digest)
    steps = ", ".join(dict.fromkeys(one.step for one in dropped))
    why = f"{event.step} must not be performed twice, and the run has gone back behind {steps}, at another place."
    return (msgspec.structs.replace(event, again=Repetition(place, state.renewed.get(place, 0), confirm=why)),)


def _is_equal(earlier: Earlier, digest: str) -> bool:
    return not earlier.digest or earlier.digest == digest


def _judge_repetition(earlier: Earlier, event: TaskScheduled, digest: str) -> Act:
    recorded = bool(bytes(earlier.output))
    return judge_effect("repeated", event.policy.effect, equal=_is_equal(earlier, digest), recorded=recorded)


def _why_not_repeated(step: str, *, equal: bool) -> str:
    before = "it may have been performed before" if equal else "it was dispatched before with another input"
    return f"{step} must not be performed twice, and {before}."


def outcome_unknown(number: EntryId, task: OpenTask) -> TaskFailed:
    """Return the event for a task that is given up while it is in flight, and that must not be performed twice."""
    message = f"{task.step} was given up while it was in flight, and the step must not be performed twice"
    failure = Failure(type="OutcomeUnknown", message=message, code=UNKNOWN, step=task.step, attempts=task.attempt)
    return TaskFailed(task=number, failure=failure, attempt=task.attempt)


def is_in_doubt(failure: Failure | None) -> bool:
    """Return whether an irreversible step may have been performed although its result is not known."""
    return failure is not None and (failure.in_doubt or failure.code == UNKNOWN)


def child_in_doubt(state: State, places: Sequence[str], advice: str = "") -> Refused:
    """Make the error for repeating child runs that failed with a step that must not be performed twice."""
    return Refused(
        f"{', '.join(dict.fromkeys(places))} of {state.run_id} failed, and a step in it that must not be performed "
        "twice may have been performed.",
        hint=f"Find out whether it was. {advice}To perform it again: weft retry {state.run_id} --approve {places[0]}",
    )


def irreversible_in_flight(state: State, numbers: Sequence[int]) -> Refused:
    """Make the error for a change to work that may not be performed twice and that a worker may be performing."""
    tasks = state.tasks | state.parked
    steps = ", ".join(dict.fromkeys(tasks[number].step for number in numbers))
    return Refused(
        f"{steps} is in flight in {state.run_id} and must not be performed twice.",
        hint="Wait until it has ended, or repeat the command with --force: its outcome is then recorded as unknown.",
        code="run.in_flight",
    )
