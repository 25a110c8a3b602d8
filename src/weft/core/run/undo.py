"""Work that was dropped while its run goes on: losers of a race, branches of a graph and steps of a goal.

What such work has done is undone at once, newest first, as soon as what is still under way in it has ended. Only then
can the run complete. If the run ends otherwise, all of this becomes part of its own undo. Pure.

Rules: docs/internals/engine.md#rule-23.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec import Raw

from weft.core.events import UndoScheduled
from weft.core.ids import EntryId
from weft.core.run.state import Reversal, State, Undo

_encode = msgspec.json.Encoder().encode


def drop(state: State, waits: Iterable[int], belongs: Callable[[Undo], bool], *, since: int) -> bool:
    """Drop work of which these tasks are still under way; whether anything has to be undone or waited for.

    ``since``: nothing of it had completed before this event.
    """
    first = len(state.undo)
    while first and state.undo[first - 1].done >= since:
        first -= 1
    newer = state.undo[first:]
    taken = [undo for undo in newer if belongs(undo)]
    if taken:
        state.undo[first:] = [undo for undo in newer if not belongs(undo)]
    waiting = list(waits)
    add(state, waiting, taken)
    return bool(waiting or taken)


def add(state: State, waits: Iterable[int], undo: Iterable[Undo]) -> None:
    """Undo this, once these tasks have ended. What waited for one of them becomes part of it."""
    waiting = set(waits)
    taken = list(undo)
    for reversal in list(state.reversals):
        if not waiting.isdisjoint(reversal.waits):
            waiting.update(reversal.waits)
            taken += reversal.undo
            state.reversals.remove(reversal)
    if waiting or taken:
        state.reversals.append(Reversal(sorted(waiting), sorted(taken, key=lambda one: one.done)))


def ended(state: State, number: int) -> None:
    """A task has ended; if it can be undone, that is the newest on the stack."""
    for reversal in state.reversals:
        if number in reversal.waits:
            reversal.waits.remove(number)
            if state.undo and state.undo[-1].task == number:
                reversal.undo.append(state.undo.pop())
            if not (reversal.waits or reversal.undo):
                state.reversals.remove(reversal)
            return


def newest(state: State) -> Undo | None:
    """What is to be undone next while the run goes on; one at a time."""
    if state.undoing or not state.reversals:
        return None
    return next((one.undo[-1] for one in state.reversals if one.undo and not one.waits), None)


def scheduled(undo: Undo) -> UndoScheduled:
    """The event that undoes it, with the recorded input and result."""
    given = {"input": undo.input, "result": undo.output}
    if bytes(undo.plan.defaults):
        given["defaults"] = undo.plan.defaults
    body = _encode(given)
    return UndoScheduled(of=EntryId(undo.task), step=undo.plan.step, input=Raw(body))


def take(state: State, number: int) -> tuple[Undo, bool]:
    """The undo of a task, taken from where it is; whether it was dropped while the run went on."""
    if state.undo and state.undo[-1].task == number:
        return state.undo.pop(), False
    reversal = next(one for one in state.reversals if one.undo and one.undo[-1].task == number)
    undo = reversal.undo.pop()
    if not reversal.undo:
        state.reversals.remove(reversal)
    return undo, True


def pending(state: State) -> bool:
    """Whether dropped work is still ending or being undone."""
    return bool(state.reversals or state.undoing)


def end_all(state: State) -> list[Undo]:
    """The run ends and undoes everything itself: what is left, newest last."""
    left = sorted((undo for one in state.reversals for undo in one.undo), key=lambda undo: undo.done)
    state.reversals = []
    return left


def join_stack(state: State, left: list[Undo]) -> None:
    """Put what is left in its place on the stack."""
    if left:
        state.undo = sorted([*state.undo, *left], key=lambda undo: undo.done)
