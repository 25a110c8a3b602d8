"""Undo work that was dropped while its run continues: losers of a race, graph branches and goal steps. Pure.

Tasks of dropped work that are still running have to end first. Then the completed tasks are undone, newest first. Only
then can the run complete. If the run fails or is cancelled, the remaining undos move to the undo stack of the run.

Rules: docs/internals/engine.md#rule-23.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Raw

from weft.core.events import (
    AnyEvent,
    UndoScheduled,
)
from weft.core.ids import EntryId
from weft.core.run.env import Env
from weft.core.run.state import Reversal, State, Undo
from weft.core.run.style import AnyRun
from weft.errors import RunUndone

_encode = msgspec.json.Encoder().encode


def drop_work(state: State, waits: Iterable[int], belongs: Callable[[Undo], bool], *, since: int) -> bool:
    """Drop work whose tasks in ``waits`` are still running. Returns whether anything has to be undone or waited for.

    No task of this work completed before the event ``since``.
    """
    first = len(state.undo)
    while first and state.undo[first - 1].done >= since:
        first -= 1
    newer = state.undo[first:]
    taken = [undo for undo in newer if belongs(undo)]
    if taken:
        state.undo[first:] = [undo for undo in newer if not belongs(undo)]
    waiting = list(waits)
    add_reversal(state, waiting, taken)
    return bool(waiting or taken)


def add_reversal(state: State, waits: Iterable[int], undo: Iterable[Undo]) -> None:
    """Add a reversal: these undos, after the tasks in ``waits`` have ended. Merges reversals that share such a task."""
    waiting = set(waits)
    taken = list(undo)
    for reversal in list(state.reversals):
        if not waiting.isdisjoint(reversal.waits):
            waiting.update(reversal.waits)
            taken += reversal.undo
            state.reversals.remove(reversal)
    if waiting or taken:
        state.reversals.append(Reversal(sorted(waiting), sorted(taken, key=lambda one: one.done)))


def note_task_ended(state: State, number: int) -> None:
    """Record that a task has ended. If a reversal waits for it, its undo moves there from the top of the stack."""
    for reversal in state.reversals:
        if number in reversal.waits:
            reversal.waits.remove(number)
            if state.undo and state.undo[-1].task == number:
                reversal.undo.append(state.undo.pop())
            if not (reversal.waits or reversal.undo):
                state.reversals.remove(reversal)
            return


def next_dropped(state: State) -> Undo | None:
    """Return the next undo of dropped work, or None if there is none or another undo is running."""
    if state.undoing or not state.reversals:
        return None
    return next((one.undo[-1] for one in state.reversals if one.undo and not one.waits), None)


def schedule_undo(undo: Undo) -> UndoScheduled:
    """Return the event that begins an undo, with the recorded input and result."""
    arguments = {"input": undo.input, "result": undo.output}
    if bytes(undo.plan.defaults):
        arguments["defaults"] = undo.plan.defaults
    body = _encode(arguments)
    return UndoScheduled(of=EntryId(undo.task), step=undo.plan.step, input=Raw(body))


def take_undo(state: State, number: int) -> tuple[Undo, bool]:
    """Remove and return the undo of a task, and whether the task was dropped while the run continued."""
    if state.undo and state.undo[-1].task == number:
        return state.undo.pop(), False
    reversal = next(one for one in state.reversals if one.undo and one.undo[-1].task == number)
    undo = reversal.undo.pop()
    if not reversal.undo:
        state.reversals.remove(reversal)
    return undo, True


def has_dropped(state: State) -> bool:
    """Return whether some dropped work is still running or not yet undone."""
    return bool(state.reversals or state.undoing)


def take_dropped(state: State) -> list[Undo]:
    """Remove and return all undos of dropped work, newest last, because the run ends."""
    left = sorted((undo for one in state.reversals for undo in one.undo), key=lambda undo: undo.done)
    state.reversals = []
    return left


def already_undone(state: State) -> RunUndone:
    """Make the error for a retry of a run whose completed work was undone."""
    return RunUndone(
        f"The completed work of {state.run_id} was undone, so the run cannot continue from where it failed.",
        hint=f"Start a new run under another id: weft start {state.workflow} --input FILE",
        run_id=state.run_id,
    )


def join_stack(state: State, left: list[Undo]) -> None:
    """Insert undos into the stack of the run, in order of completion."""
    if left:
        state.undo = sorted([*state.undo, *left], key=lambda undo: undo.done)


def follow_dropped(run: AnyRun, env: Env) -> Sequence[AnyEvent]:
    """Return the event that begins the next undo of dropped work, if there is one."""
    newest = next_dropped(run.state)
    return () if newest is None else run.style.undo(newest, env)
