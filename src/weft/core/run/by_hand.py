"""End open work by hand: a task, timer, question or child gets the result that a person gives it. Pure.

``result_set`` says who did it and why, and withdraws the work. The event after it is the one that ends such work in any
other way, so it is routed, counted and replayed in the same way.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import values
from weft.core.commands import SetResult
from weft.core.effects import AnyEffect, DisarmTimer, StopTask
from weft.core.events import (
    NULL,
    AnyEvent,
    AskAnswered,
    ChildEnded,
    ResultSet,
    TaskFailed,
    TaskSucceeded,
    TimerFired,
)
from weft.core.ids import EntryId
from weft.core.run import repeats, withheld
from weft.core.run.env import Env, MissingInputs
from weft.core.run.state import OpenTask, Question, State
from weft.core.run.statuses import permits
from weft.core.run.style import AnyRun
from weft.errors import BadValue, Failure, NotFound, Refused

SET = "step.set"
PLACES_SHOWN_MAX = 20


def decide_set_result(run: AnyRun, command: SetResult, env: Env) -> Sequence[AnyEvent]:
    """End the open work at a place.

    Raises:
        NotFound: nothing is open there.
        Refused: the status of the run or the kind of the work does not allow it, or an irreversible task is in flight.
        BadValue: the result has the wrong type.
        MissingInputs: the result is in a blob that is not in memory.
    """
    state = run.state
    permits(state, command)
    number = None if state.over else find_open(run, command.place)
    raw = _json_of(command.output, env)
    if raw:
        env.check_result(step_at(state, command.place, number), raw)
    if number is None:
        return run.style.set_ended(command)
    error = run.style.result_error(number, command.output, env) if bytes(command.output) else None
    if error is not None:
        message = f"The result for {command.place!r} does not fit: {error}."
        raise BadValue(message, hint="Nothing was changed.", code="value.wrong_type")
    return _end_open(run, number, command, env)


def _json_of(output: Raw, env: Env) -> bytes:
    """Return the JSON of an output. Raises MissingInputs if it is in a blob that is not in memory."""
    raw = values.inline_json(bytes(output))
    if raw is None:
        digest = values.parse_ref(bytes(output)).digest
        raw = env.blob(digest)
        if raw is None:
            raise MissingInputs(blobs=[digest])
    return raw


def step_at(state: State, place: str, number: int | None) -> str:
    """Return the step at a place: of the open entry with this number, or of one that has ended. Empty if it is none."""
    if number is None:
        return place.rpartition("/")[2].partition("#")[0]
    task = state.tasks.get(number) or state.parked.get(number)
    return task.step if task is not None else ""


def nothing_open(state: State, place: str) -> NotFound:
    """Make the error for a place at which nothing can be set."""
    return NotFound(
        f"Nothing is open at {place[:60]!r} in {state.run_id}, and what has ended cannot be set.",
        hint=f"To see what the run waits for: weft explain {state.run_id}. To change the past: weft fork.",
    )


def find_open(run: AnyRun, place: str) -> int | None:
    """Return the number of the open work at a place, if there is any. A node or step may stand for its only work.

    Raises Refused if there are several.
    """
    state = run.state
    tasks = {
        number: task for number, task in (state.tasks | state.parked).items() if not (task.draining or task.undo_of)
    }
    children = [number for number, child in state.children.items() if not child.cancelled]
    others = [number for number in (*state.timers, *state.waits, *state.asks) if number not in state.tasks]
    numbers = sorted({*tasks, *children, *(number for number in others if number not in state.parked)})
    places = {number: run.location(number) for number in sorted(numbers)}
    found = [number for number, at in places.items() if at == place]
    if not found and not run.style.has_code:
        found = [number for number, at in places.items() if at.startswith((f"{place}/", f"{place}["))]
    if len(found) > 1:
        names = ", ".join(places[number] for number in found[:PLACES_SHOWN_MAX])
        raise Refused(
            f"{len(found)} things are open at {place[:60]!r} in {state.run_id}.", hint=f"Name one of them: {names}"
        )
    return found[0] if found else None


def _end_open(run: AnyRun, number: int, command: SetResult, env: Env) -> Sequence[AnyEvent]:
    """Return the events that end an open entry by hand."""
    state, entry = run.state, EntryId(number)
    is_output = check_given(command)
    noted = ResultSet(entry=entry, performed=command.performed, reason=command.reason, by=command.by)
    task = state.tasks.get(number) or state.parked.get(number)
    if task is not None:
        place = run.location(number)
        node = place if run.style.has_code else place.partition("/")[0]
        draining = withdrawn_in_flight(state, {node}, task.within)
        forced = [*([entry] if is_irreversible_in_flight(state, number) else []), *draining]
        if forced and not command.force:
            raise repeats.irreversible_in_flight(state, forced)
        given_up = [repeats.outcome_unknown(one, state.tasks.get(one) or state.parked[one]) for one in draining]
        end = TaskSucceeded(task=entry, output=command.output, attempt=task.attempt)
        failed = TaskFailed(task=entry, failure=failure_by_hand(command, task.step), attempt=task.attempt)
        return (*given_up, msgspec.structs.replace(noted, forced=forced), end if is_output else failed)
    child = state.children.get(number)
    if child is not None:
        status = "completed" if is_output else "failed"
        failure = None if is_output else failure_by_hand(command, child.workflow)
        ended = ChildEnded(child=entry, status=status, output=command.output if is_output else NULL, failure=failure)
        return (msgspec.structs.replace(noted, child=child.uid), ended)
    if not is_output or number in state.waits:
        raise _not_settable(run, number)
    if number in state.asks:
        return (noted, _answer_by_hand(state.asks[number], entry, command, env))
    if bytes(command.output) != b"null":
        raise BadValue(f"{command.place!r} is a timer; it has no result.", hint="Give null.", code="value.wrong_type")
    return (noted, TimerFired(timer=entry))


def check_given(command: SetResult) -> bool:
    """Return whether an output is given, not an error. Raises BadValue if it is not exactly one of them."""
    is_output = bool(bytes(command.output))
    if is_output == bool(command.error):
        raise BadValue("Give either an output or an error.", code="value.wrong_type")
    return is_output


def failure_by_hand(command: SetResult, step: str) -> Failure:
    """Return the failure that a person has given."""
    return Failure(type="SetByHand", message=command.error, code=SET, step=step)


def is_irreversible_in_flight(state: State, number: int) -> bool:
    """Return whether a worker or an external service may be performing an irreversible task."""
    task = state.tasks.get(number) or (state.parked.get(number) if number in state.accepted else None)
    return task is not None and task.policy.effect == "irreversible"


def withdrawn_in_flight(state: State, places: Container[str], within: Sequence[str] | None = None) -> list[EntryId]:
    """Return the irreversible tasks that were withdrawn, and that somebody may still be performing. A node is a place.

    ``within``: only those in exactly these branches of a graph.
    """
    return [
        EntryId(number)
        for number, task in (state.tasks | state.parked).items()
        if task.draining
        and (task.place in places or task.place.partition("/")[0] in places)
        and (within is None or task.within == within)
        and is_irreversible_in_flight(state, number)
    ]


def _not_settable(run: AnyRun, number: int) -> Refused:
    state, place = run.state, run.location(number)
    if number in state.waits:
        names = state.waits[number].names or ["NAME"]
        hint = f"Send the message: {' or '.join(f'weft send {state.run_id} {name}' for name in names)}"
        return Refused(f"{place!r} waits for a message in {state.run_id}; its result cannot be set.", hint=hint)
    if number in state.asks:
        hint = f"weft decide {state.run_id}:{place} reject"
        return Refused(f"{place!r} is a question in {state.run_id}; it cannot be given an error.", hint=hint)
    return Refused(
        f"{place!r} is a timer in {state.run_id}; it cannot be given an error.", hint="Give the output null."
    )


def _answer_by_hand(question: Question, entry: EntryId, command: SetResult, env: Env) -> AskAnswered:
    """Return the answer to a question: an object with ``approved`` and, if the question has a form, ``form``."""
    given = read_decision(command)
    form = Raw(msgspec.json.encode(given.get("form")))
    if given["approved"] and question.form is not None:
        error = env.check(question.form, bytes(form))
        if error is not None:
            message = f"The form of {command.place!r} has the wrong type: {error}."
            raise BadValue(message, hint="The question is still open.", code="value.wrong_type")
    reason = str(given.get("reason") or command.reason)
    return AskAnswered(ask=entry, approved=given["approved"], by=command.by, reason=reason, form=form)


def read_decision(command: SetResult) -> dict[str, Any]:
    """Return the decision that a person gives as the result of a question. Raises BadValue."""
    given = msgspec.json.decode(values.unseal(bytes(command.output)))
    if not isinstance(given, dict) or not isinstance(given.get("approved"), bool):
        raise BadValue(
            f"{command.place!r} is a question; its result is a decision.",
            hint='Give an object: {"approved": true, "reason": "…", "form": …}.',
            code="value.wrong_type",
        )
    return given


def evolve_result_set(state: State, event: ResultSet) -> None:
    """Withdraw an open task. Unless somebody may have done the work, its undo is not registered."""
    number = event.entry
    if withheld.is_unconfirmed(state, number):
        del state.asks[number]
        withheld.evolve_confirmed(state, number)
    task: OpenTask | None = state.tasks.get(number) or state.parked.get(number)
    if task is not None and not event.performed and number not in event.forced:
        task.undo = None
    state.earlier = {**state.earlier, **event.earlier}


def effects_of_set(_: AnyRun, event: ResultSet) -> Sequence[AnyEffect]:
    """Stop the worker and the timer of the entry, and the workers of tasks that were given up."""
    return (StopTask(event.entry), DisarmTimer(event.entry), *map(StopTask, event.forced))
