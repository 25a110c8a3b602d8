"""The budget of a run: set at its start, raised by people, and the warning when most of it is spent. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core.budgets import BudgetLimits, currency_of
from weft.core.commands import NoteBudget, RaiseBudget, StartRun
from weft.core.events import AnyEvent, BudgetRaised, BudgetSet, BudgetWarned
from weft.core.run.state import State
from weft.core.run.statuses import permits
from weft.errors import Refused


def set_budget(command: StartRun) -> BudgetSet:
    """Return the event of a run that begins with a budget."""
    assert command.budget is not None
    return BudgetSet(limits=command.budget.limits, warn=command.budget.warn, of=command.budget.of)


def check_currency(above: str, budget: BudgetLimits) -> None:
    """Check that money is limited in one currency throughout a tree of runs. Raises Refused."""
    own = currency_of(budget.limits)
    if above and own and own != above:
        raise Refused(
            f"The budget is in {own}, and a budget above it is in {above}.",
            hint=f"Write this budget in {above}: money is counted in one currency throughout a tree of runs.",
            code="budget.no_price",
        )


def decide_raise(state: State, command: RaiseBudget) -> Sequence[AnyEvent]:
    """Raise limits. Raises Refused if the run has no such limit."""
    if not permits(state, command):
        return ()
    budget = state.budget
    if budget is None:
        raise Refused(
            f"{state.run_id} has no budget of its own, so there is nothing to raise.",
            hint="Raise the budget of the run above it that has one: weft show --tree shows them.",
        )
    missing = [unit for unit in command.added if unit not in budget.limits]
    if missing:
        known = ", ".join(sorted(budget.limits))
        raise Refused(f"The budget of {state.run_id} does not limit {', '.join(missing)}.", hint=f"It limits {known}.")
    return (BudgetRaised(added=command.added, by=command.by, reason=command.reason),)


def decide_warning(state: State, command: NoteBudget) -> Sequence[AnyEvent]:
    """Record that a warning is due, once for each unit."""
    if state.over or state.budget is None or command.unit in state.warned or command.unit not in state.budget.limits:
        return ()
    return (BudgetWarned(unit=command.unit),)


def evolve_budget_set(state: State, event: BudgetSet) -> None:
    """Give the run a budget, from which it and everything below it spend."""
    state.budget = BudgetLimits(limits=dict(event.limits), warn=event.warn, of=list(event.of))
    state.currency = state.currency or currency_of(event.limits)
    state.accounted = True


def evolve_raised(state: State, event: BudgetRaised) -> None:
    """Raise limits."""
    if state.budget is not None:
        limits = {unit: limit + event.added.get(unit, 0) for unit, limit in state.budget.limits.items()}
        state.budget = msgspec.structs.replace(state.budget, limits=limits)


def evolve_warned(state: State, event: BudgetWarned) -> None:
    """Remember that a warning is recorded."""
    state.warned = [*state.warned, event.unit]
