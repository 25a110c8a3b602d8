"""What a run and everything below it have spent, of which budgets, and who spent most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from weft.core.budgets import amount_text
from weft.core.ids import RunId, RunUid
from weft.core.ledger import LedgerRow, account_of
from weft.observe.runs import read_run
from weft.ports.run_query import RunQuery
from weft.ports.store import RunRow
from weft.runtime.service import RunService

RUNS_MAX = 1_000
"""How many runs of a tree are looked at."""
SPENDERS_MAX = 10
"""How many runs are named that spent most."""


class UnitUsage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one unit was used: money in millionths, time in milliseconds."""

    unit: str
    """``tokens``, ``money:USD``, ``calls``, ``tools``, ``time`` or ``tool:NAME``."""
    spent: int
    at_most: int = 0
    """How much of ``spent`` was only reserved, by calls whose end nobody knows."""
    reserved: int = 0
    """For calls that are under way."""
    limit: int | None = None
    left: int | None = None
    text: str = ""
    """The same for people."""


class BudgetUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of one budget."""

    run: str
    """The run that has the budget."""
    units: list[UnitUsage]


class Spender(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls of one run have spent, without those of its children."""

    run: str
    workflow: str
    units: list[UnitUsage]


class RunUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a run and everything below it have spent."""

    run: str
    units: list[UnitUsage]
    has_budget: bool
    """Whether the run has a budget of its own, which can be raised."""
    budgets: list[BudgetUsage]
    """The budgets that the run spends from, topmost first, with its own."""
    spenders: list[Spender]
    """The runs that spent most, by the unit that is listed first."""

    def spent(self, unit: str) -> int:
        """Return how much of a unit was spent."""
        return next((one.spent for one in self.units if one.unit == unit), 0)


async def usage_of(service: RunService, row: RunRow) -> RunUsage:
    """Return what a run and everything below it have spent. Raises NotFound."""
    state = (await read_run(service, row)).state
    tree = await _rows_of_tree(service, row)
    accounts = await service.store.budgets.read([account_of(run.uid) for run in tree])
    own = await service.store.budgets.read([row.uid]) if state.budget is not None else _sum_by_unit(accounts)
    names = {run.uid: run for run in tree}
    budgets = [await _budget(service, uid) for uid in state.scopes]
    return RunUsage(
        run=row.id,
        units=[_unit(one) for one in _ordered_usage(own)],
        has_budget=state.budget is not None,
        budgets=[found for found in budgets if found is not None],
        spenders=_spenders(accounts, names),
    )


def has_other_spenders(usage: RunUsage) -> bool:
    """Return whether others than the run itself have spent something, so that it is worth naming them."""
    return any(one.run != usage.run for one in usage.spenders)


def budget_sentences(usage: RunUsage) -> list[str]:
    """Say what is left of each budget, who spent most, and how to raise the budget of the run."""
    found = [f"budget of {one.run}: {unit.text}" for one in usage.budgets for unit in one.units]
    if found and has_other_spenders(usage):
        most = usage.spenders[0]
        found.append(f"most was spent by {most.run}: {', '.join(unit.text for unit in most.units[:2])}")
    if usage.has_budget:
        found.append(f"to raise it: weft budget {usage.run} --add UNIT=AMOUNT")
    return found


async def _rows_of_tree(service: RunService, row: RunRow) -> list[RunRow]:
    """Return the run and those below it, as far as there are not too many."""
    found, todo = [row], [row]
    while todo and len(found) < RUNS_MAX:
        parent, after = todo.pop(0), None
        while len(found) < RUNS_MAX:
            page = await service.search(RunQuery(parent=parent.uid, after=after, internal=True))
            found += page.rows
            todo += page.rows
            after = page.cursor
            if after is None:
                break
    return found[:RUNS_MAX]


async def _budget(service: RunService, uid: str) -> BudgetUsage | None:
    owner = await service.store.directory.row(RunUid(uid))
    if owner is None:
        return None
    rows = await service.store.budgets.read([uid])
    return BudgetUsage(run=RunId(owner.id), units=[_unit(row) for row in _ordered_usage(rows) if row.limit is not None])


def _sum_by_unit(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Add up the rows of several scopes, by unit."""
    totals: dict[str, LedgerRow] = {}
    for row in rows:
        total = totals.setdefault(row.unit, LedgerRow(scope="", unit=row.unit))
        total.spent += row.spent
        total.at_most += row.at_most
        total.reserved += row.reserved
    return list(totals.values())


def _spenders(rows: Iterable[LedgerRow], names: dict[RunUid, RunRow]) -> list[Spender]:
    by_scope: dict[str, list[LedgerRow]] = {}
    for row in rows:
        if row.spent:
            by_scope.setdefault(row.scope, []).append(row)
    found = [
        Spender(
            run=run.id, workflow=run.workflow, units=[_unit(row) for row in _ordered_usage(by_scope[account_of(uid)])]
        )
        for uid, run in names.items()
        if account_of(uid) in by_scope
    ]
    return sorted(found, key=_cost_order, reverse=True)[:SPENDERS_MAX]


def _cost_order(spender: Spender) -> tuple[int, ...]:
    """Return how expensive a run was: by money, then tokens, then calls."""
    units = {unit.unit.partition(":")[0]: unit.spent for unit in spender.units}
    return tuple(units.get(unit, 0) for unit in ("money", "tokens", "calls", "tools", "time"))


_ORDER = ("money", "tokens", "calls", "tools", "time", "tool")


def _ordered_usage(rows: Iterable[LedgerRow]) -> Sequence[LedgerRow]:
    return sorted(rows, key=lambda row: (_ORDER.index(row.unit.partition(":")[0]), row.unit))


def _unit(row: LedgerRow) -> UnitUsage:
    return UnitUsage(
        unit=row.unit,
        spent=row.spent,
        at_most=row.at_most,
        reserved=row.reserved,
        limit=row.limit,
        left=None if row.left is None else max(0, row.left),
        text=_usage_text(row),
    )


def _usage_text(row: LedgerRow) -> str:
    """Say how much of a unit was used and is left: "0.25 USD spent, 0.10 USD reserved, 1.65 USD of 2.00 USD left"."""
    parts = [f"{'at most ' if row.at_most else ''}{amount_text(row.unit, row.spent)} spent"]
    if row.reserved:
        parts.append(f"{amount_text(row.unit, row.reserved)} reserved")
    if row.limit is not None:
        left = max(0, row.left or 0)
        parts.append(f"{amount_text(row.unit, left)} of {amount_text(row.unit, row.limit)} left")
    return ", ".join(parts)
