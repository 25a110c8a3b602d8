"""Forks: a run that shares the past of another one. Pure.

The log of a fork begins with events of its original, folded under the uid of the fork. ``run_forked`` ends this common
past: what was open begins anew, and what was to be undone is left to the original. ``run_edited`` changes the fork
before it goes on.

Rules: docs/internals/engine.md#rule-36.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from weft.core import events as e
from weft.core.commands import EditRun
from weft.core.findings import Finding
from weft.core.ids import EntryId
from weft.core.run import lifecycle, messages, withheld
from weft.core.run.env import Env
from weft.core.run.places import is_at
from weft.core.run.state import Fork, OpenTask, State
from weft.core.run.style import AnyRun
from weft.errors import Refused

BAD_EDIT = "fork.bad_edit"

_SETTABLE_SHOWN = 20
"""How many places an error names."""


def evolve_forked(run: AnyRun, event: e.RunForked) -> None:
    """End the common past. A run that is over stays over; one that was paused or held goes on."""
    state = run.state
    fork = state.fork = _merge_fork(state, event)
    if state.over:
        return
    if state.status in ("paused", "held"):
        lifecycle.evolve_resumed(state)
    state.undo, state.reversals, state.undoing, state.not_undone = [], [], 0, []
    state.approvals = list(event.yes)
    _reset_tasks(state)
    _reset_questions(state)
    state.asked, state.reviews = {}, {}  # they are for the original
    for child in event.children:
        restarted = state.children[child.entry]
        restarted.uid, restarted.run_id = child.uid, child.run_id
        restarted.due = _shift_due(state, restarted.due, restarted.since)
        restarted.since = state.at
    for number, task in state.tasks.items():
        withheld.hold_back_in_fork(state, fork, number, task)


def _merge_fork(state: State, event: e.RunForked) -> Fork:
    """Return what the fork knows. A fork of a fork also knows what that one does."""
    before = state.fork or Fork(point=0)
    return Fork(
        point=state.seq,
        effects=event.effects,
        by=event.by,
        known=before.known,
        set_results=before.set_results,
    )


def _reset_tasks(state: State) -> None:
    """Hand open tasks out anew. Undos, and tasks of which only the end was awaited, are left to the original."""
    for number in [*state.accepted, *(number for number in state.parked if withheld.is_unconfirmed(state, number))]:
        state.tasks[number] = state.parked.pop(number)
        state.timers.pop(number, None)
        state.asks.pop(number, None)
    state.accepted, state.withheld = {}, []
    for number, task in list(state.tasks.items()):
        if task.undo_of or task.draining:
            del state.tasks[number]
        else:
            _reset_task(task, state.at)
    for number in [number for number, task in state.parked.items() if task.draining]:
        del state.parked[number]
        state.timers.pop(number, None)
    for task in state.parked.values():
        _reset_task(task, state.at)


def _reset_task(task: OpenTask, at: int) -> None:
    task.attempt = task.delivery = 1
    task.lost = task.due = 0
    task.last = None
    task.since = at
    task.withheld = False


def _reset_questions(state: State) -> None:
    """Ask open questions anew."""
    for question in state.asks.values():
        question.approvals, question.stands, question.told = [], {}, ""
        question.due = _shift_due(state, question.due, question.since)
        question.since = state.at
        question.reminded = 0
        question.remind_at = state.at + question.remind_ms if question.remind_ms else 0


def _shift_due(state: State, due: int, since: int) -> int:
    return state.at + due - since if due else 0


def finish_decision(run: AnyRun, last: e.AnyEvent, env: Env) -> Sequence[e.AnyEvent]:
    """Return the consequences of the event that comes next, if a log is cut after it. Not all follow by themselves."""
    extend = run.style.consequences
    return () if extend is None else extend((last,), env)[1:]


def finish_waits(run: AnyRun) -> Sequence[e.AnyEvent]:
    """Return what a log that was cut inside a decision lacks, if it does not follow by itself.

    A message is taken by the wait for it, and a cancel or a deadline ends a run without code.
    """
    state = run.state
    if state.over:
        return ()
    events: list[e.AnyEvent] = []
    for number, wait in state.waits.items():
        found = messages.waiting_messages(state, wait.names, wait.most)
        if found:
            events.append(e.MessagesTaken(wait=EntryId(number), ids=[message.id for message in found]))
    if run.style.has_code or state.ended:
        return events
    if state.cancelled is not None:
        return (*events, *run.style.cancel_open(), e.RunEnding())
    if state.timed_out:
        return (*events, *run.style.cancel_open(), e.RunEnding(failure=lifecycle.deadline_failure(state)))
    return events


def children_that_ended(state: State) -> Sequence[e.AnyEvent]:
    """Return the end of children that were being stopped: they belong to the original, and a fork has none of them."""
    return [
        e.ChildEnded(child=EntryId(number), status="cancelled")
        for number, child in state.children.items()
        if child.cancelled
    ]


def bad_edit(wrong: Sequence[str], *, hint: str = "") -> Refused:
    """Make the error for edits that a fork cannot have, with all that is wrong."""
    findings = [Finding(BAD_EDIT, f"{one}.") for one in wrong]
    message = f"The fork cannot be edited like this: {'; '.join(wrong)}."
    return Refused(message, hint=hint, code=BAD_EDIT, findings=findings)


def never_reached(place: str, command: EditRun) -> str:
    """Return why a result at this place would have no effect: there was no step, and will be none; or nothing."""
    name, mark, nth = place.rpartition("/")[2].partition("#")
    is_offered = command.more is None or name in command.more
    is_known = (is_offered and (not mark or nth.isdecimal())) or any(is_at(step, place) for step in command.steps)
    return "" if is_known else f"the run never came to a step {place[:60]}"


def places_hint(steps: Iterable[str]) -> str:
    """Return the hint that names the places that can be meant: those at which the original came to a step."""
    places = list(dict.fromkeys(steps))
    more = f" and {len(places) - _SETTABLE_SHOWN} more" if len(places) > _SETTABLE_SHOWN else ""
    return f"It came to these steps: {', '.join(places[:_SETTABLE_SHOWN]) or 'none'}{more}."


def settable_now_hint(places: Iterable[str]) -> str:
    """Return the hint that names the nodes or steps whose results can be set at the point of the fork."""
    found = list(islice(places, _SETTABLE_SHOWN + 1))
    more = " and more" if len(found) > _SETTABLE_SHOWN else ""
    return f"Results that can be set at this point: {', '.join(found[:_SETTABLE_SHOWN]) or 'none'}{more}."


def evolve_known(run: AnyRun, event: e.ResultsKnown) -> None:
    """Remember results of the original. They are recorded before ``run_forked``."""
    state = run.state
    fork = state.fork = state.fork or Fork(point=0)
    for result in event.results:
        fork.known.setdefault(withheld.work_key(result.step, result.digest), []).append(result)


def evolve_edited(run: AnyRun, event: e.RunEdited) -> None:
    """Apply the changes that every style has: the input, the version, and results of work that has not ended.

    Work whose result is set is not a repetition of what the original did there before a retry.
    """
    state, fork = run.state, run.state.fork
    assert fork is not None
    if bytes(event.input):
        state.input = event.input
        fork.has_new_input = True
    if event.version:
        state.version = event.version
    fork.set_results = {**fork.set_results, **event.results}
    state.earlier = {
        place: work for place, work in state.earlier.items() if not any(is_at(place, name) for name in event.results)
    }
    for number, task in state.tasks.items():
        if any(is_at(run.location(number), name) for name in event.results):
            withheld.hold_back(state, number, task)
