"""The moves of the ledger that follow from the events of a run. Pure.

A call is reserved when its task is dispatched and settled when its delivery is over: with what it spent if it reported
that, else with all that was reserved for it. A call that was never made is released. The moves are written in the
append that has the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from weft.core import events as e
from weft.core.budgets import Amounts, Cover, larger_amounts, units_of
from weft.core.effects import AnyEffect, PerformTask
from weft.core.ledger import BudgetWindow, HandOut, MarkWarned, Move, ReleaseCover, Reserve, SetLimits, Settle
from weft.core.run.state import OpenTask, State

FindWindows = Callable[[PerformTask | None], Sequence[BudgetWindow]]
"""Returns the windows of time that a call spends from. None stands for a call that is over and had no cover."""


def no_windows(_: PerformTask | None) -> Sequence[BudgetWindow]:
    """Spend from no window."""
    return ()


def open_covered(state: State, task: OpenTask, cover: Cover | None) -> None:
    """Cover a task that was just opened. A step that reported what it spent is covered with the most of it."""
    known = state.spends.get(task.step)
    if known is not None and not _limits_spending(cover):
        counted = cover.amounts if cover is not None else Amounts()
        cover = Cover(
            amounts=msgspec.structs.replace(counted, tokens=known.tokens, money=known.money, currency=known.currency)
        )
    if cover is not None:
        task.cover = cover
        state.accounted = True


def note_spent(state: State, task: OpenTask, spent: Amounts) -> None:
    """Remember what a step has spent that says only afterwards how much that was."""
    state.accounted = True
    known = state.spends.get(task.step)
    if known is not None or not _limits_spending(task.cover):
        reported = Amounts(tokens=spent.tokens, money=spent.money, currency=spent.currency)
        state.spends = {**state.spends, task.step: reported if known is None else larger_amounts(known, reported)}


def _limits_spending(cover: Cover | None) -> bool:
    """Return whether a cover says how many tokens or how much money a call may cost, not only that it is a call."""
    return cover is not None and bool(cover.amounts.tokens or cover.amounts.money)


class OpenCovers:
    """The calls of a run that are in hands. Kept beside the state, from which it can be made at any time."""

    def __init__(self, state: State) -> None:
        self.granted: dict[HandOut, int] = {}
        """The output tokens that were granted to calls."""
        self._open: dict[int, tuple[HandOut, int]] = {}
        for number, task in (*state.tasks.items(), *state.parked.items()):
            if task.cover is not None:
                self._open[number] = (_covered_call(number, task), task.due)

    def moves(
        self, state: State, event: e.AnyEvent, effects: Sequence[AnyEffect], windows: FindWindows = no_windows
    ) -> list[Move]:
        """Return the moves of an event that was just applied, with its effects."""
        moves = [*_limit_moves(state, event), *self._settle_ended_calls(state, event, windows)]
        for effect in effects:
            if isinstance(effect, PerformTask) and effect.cover is not None:
                moves.append(reserve(state, effect, windows(effect)))
                self._open[effect.task] = (HandOut(effect.task, effect.attempt, effect.delivery), effect.due)
        return moves

    def _settle_ended_calls(self, state: State, event: e.AnyEvent, windows: FindWindows) -> Iterable[Move]:
        """Settle the calls that the event has ended."""
        reported = event if isinstance(event, e.TaskSucceeded | e.TaskFailed) else None
        spent = units_of(reported.spent) if reported is not None and reported.spent is not None else None
        if reported is not None and reported.task not in self._open and spent:
            # A step without a cover has reported what it spent. No reservation has this key.
            call = HandOut(reported.task, reported.attempt, 0)
            yield Settle(call, list(state.scopes), spent, list(windows(None)))
        for number, (call, due) in list(self._open.items()):
            task = state.tasks.get(number) or state.parked.get(number)
            if task is not None and _covered_call(number, task) == call:
                continue
            del self._open[number]
            self.granted.pop(call, None)
            if reported is not None and reported.task == number:
                yield Settle(call, list(state.scopes), spent)
            elif due > state.at:
                yield ReleaseCover(call)
            else:
                yield Settle(call, list(state.scopes))


def reserve(state: State, effect: PerformTask, windows: Sequence[BudgetWindow] = ()) -> Reserve:
    """Return the move that reserves the cover of a call. Its time is covered by the timeout of the task."""
    assert effect.cover is not None
    cover, timeout_ms = effect.cover, effect.policy.timeout_ms
    if timeout_ms and not cover.amounts.time:
        least = cover.least
        cover = msgspec.structs.replace(
            cover,
            amounts=msgspec.structs.replace(cover.amounts, time=timeout_ms),
            least=None if least is None else msgspec.structs.replace(least, time=timeout_ms),
        )
    call = HandOut(effect.task, effect.attempt, effect.delivery)
    return Reserve(call, cover, list(state.scopes), list(windows))


def limit_moves(state: State) -> list[Move]:
    """Return the move that gives a copy of a run the limits that its log has."""
    budget = state.budget
    return [] if budget is None else [SetLimits(state.uid, dict(budget.limits), budget.warn)]


def _limit_moves(state: State, event: e.AnyEvent) -> list[Move]:
    match event:
        case e.BudgetSet():
            return [SetLimits(state.uid, dict(event.limits), event.warn)]
        case e.BudgetRaised():
            return [SetLimits(state.uid, dict(event.added), raises=True)]
        case e.BudgetWarned():
            return [MarkWarned(state.uid, event.unit)]
    return []


def _covered_call(number: int, task: OpenTask) -> HandOut:
    return HandOut(number, task.attempt, task.delivery)
