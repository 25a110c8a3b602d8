"""The calls of a run that spend from budgets: reserve them in the append that dispatches them, and settle them.

A call is dispatched only after an append that carried its reservation was accepted, and only if the reservation was
granted. Otherwise its task fails with ``BudgetExceeded``; nothing has left the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.budgets import MONEY, amount_text
from weft.core.effects import AnyEffect, PerformTask
from weft.core.ids import EntryId, RunId, RunUid
from weft.core.ledger import Crossed, Granted, HandOut, Short, window_length
from weft.core.machine import Machine
from weft.core.run.covers import OpenCovers, reserve
from weft.errors import BudgetExceeded, Failure
from weft.runtime.run.draft import Draft, PendingCommand
from weft.runtime.run.ports import RunPorts


class SpendingRun(Protocol):
    """The parts of a run in memory that calls with a cover need."""

    uid: RunUid
    id: RunId
    ports: RunPorts
    machine: Machine
    covers: OpenCovers | None

    def open_draft(self) -> Draft: ...

    def end_turn(self) -> None: ...

    def post(self, posted: PendingCommand) -> None: ...

    def give_up(self, error: BaseException) -> None: ...


def add_moves(run: SpendingRun, draft: Draft, event: e.AnyEvent, effects: Sequence[AnyEffect]) -> None:
    """Add the moves of the ledger that follow from an event to the draft that has it."""
    state = run.machine.state
    if run.covers is None:
        run.covers = OpenCovers(state)
    draft.ledger += tuple(run.covers.moves(state, event, effects, partial(run.ports.windows, state)))


def reserve_again(run: SpendingRun, effect: PerformTask) -> None:
    """Dispatch a call of a run that was just loaded, after its reservation was made or found."""
    draft = run.open_draft()
    draft.effects.append(effect)
    state = run.machine.state
    draft.ledger += (reserve(state, effect, run.ports.windows(state, effect)),)
    run.end_turn()


def covered_effects(run: SpendingRun, draft: Draft) -> list[AnyEffect]:
    """Act on the answers of the ledger. Returns the effects of the draft without the calls that were not granted."""
    refused: dict[HandOut, Short] = {}
    for answer in draft.answers:
        if isinstance(answer, Short):
            refused[answer.call] = answer
        elif isinstance(answer, Granted) and run.covers is not None:
            run.covers.granted[answer.call] = answer.output
        elif isinstance(answer, Crossed):
            _warn_run_with_budget(run, answer)
    left: list[AnyEffect] = []
    for effect in draft.effects:
        short = refused.get(_hand_out(effect)) if isinstance(effect, PerformTask) else None
        if short is None or not isinstance(effect, PerformTask):
            left.append(effect)
        else:
            refuse_call(run, effect, short)
    return left


def with_grant(run: SpendingRun, effect: PerformTask) -> PerformTask:
    """Return the effect with the output that was granted to it, which may be shorter than what it asked for."""
    cover, covers = effect.cover, run.covers
    output = covers.granted.get(_hand_out(effect)) if covers is not None else None
    if cover is None or output is None or output == cover.output:
        return effect
    return msgspec.structs.replace(effect, cover=msgspec.structs.replace(cover, output=output))


def refuse_call(run: SpendingRun, effect: PerformTask, short: Short) -> None:
    """Report that a call was not made, because not enough is left of the budget of this run, of one above, or of a
    window.
    """
    if window_length(short.scope) or short.scope == run.uid:
        run.post(PendingCommand(report_uncovered_call(effect, short, run.id)))
        return

    async def name_run() -> None:
        owner = await run.ports.fetching.run_id(RunUid(short.scope))
        run.post(PendingCommand(report_uncovered_call(effect, short, owner)))

    run.ports.background.spawn(name_run(), run)


def report_uncovered_call(effect: PerformTask, short: Short, owner: str) -> c.ReportTaskFailed:
    """Return the report that a call was not made. ``owner`` is the id of the run whose budget it is."""
    per = window_length(short.scope)
    if per:
        whose, hint = f"the limit of the policy per {per}", f"It may be made again when the next {per} begins, in UTC."
        owner = ""
    else:
        whose, hint = (
            f"the budget of {owner}",
            f"To raise it: weft budget {owner} --add {_unit_text(short.unit)}=AMOUNT",
        )
    facts = {name: getattr(short, name) for name in BudgetExceeded.FACTS if hasattr(short, name)}
    failure = Failure(
        type=BudgetExceeded.__name__,
        message=shortage_text(whose, short),
        code=BudgetExceeded.code,
        step=effect.step,
        location=effect.location,
        attempts=effect.attempt,
        attributes={**facts, "run": owner, "per": per, "hint": hint},
    )
    return c.ReportTaskFailed(effect.task, effect.attempt, effect.delivery, failure, retryable=False)


def _unit_text(unit: str) -> str:
    """Return a unit as people write it."""
    return "money" if unit.startswith(MONEY) else unit


def shortage_text(whose: str, short: Short) -> str:
    """Say of which unit too little is left for a call."""
    unit, left = short.unit, max(0, short.limit - short.spent - short.reserved)
    return (
        f"{whose}, {amount_text(unit, short.limit)}, has {amount_text(unit, left)} left, "
        f"and the call may need {amount_text(unit, short.wanted)}"
    )


def _warn_run_with_budget(run: SpendingRun, crossed: Crossed) -> None:
    """Tell the run with a budget that most of it is spent. It records that once, whoever tells it."""
    command = PendingCommand(c.NoteBudget(crossed.unit))
    if crossed.scope == run.uid:
        run.post(command)
    elif crossed.scope in run.machine.state.scopes:
        run.ports.deliver(RunUid(crossed.scope), command)


def _hand_out(effect: PerformTask) -> HandOut:
    return HandOut(EntryId(effect.task), effect.attempt, effect.delivery)
