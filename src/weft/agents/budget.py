"""Budgets as programs write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from weft.core.budget_text import read_budget
from weft.core.budgets import MONEY, BudgetLimits, amount_text
from weft.errors import BadValue


class Budget:
    """What a run and everything below it may spend. Only the units that are given are limited."""

    __slots__ = ("limits",)

    def __init__(
        self,
        *,
        tokens: int | None = None,
        money: str | None = None,
        calls: int | None = None,
        tools: int | None = None,
        time: str | float | timedelta | None = None,
        per_tool: Mapping[str, int] | None = None,
        warn: float = 0.8,
        of: Sequence[str] = (),
    ) -> None:
        """``money`` has its currency: "2.50 USD". ``time`` is what the calls take, without waits.

        ``per_tool`` limits the calls of single tools. The run records a warning when the part
        ``warn`` of a limit is spent. ``of`` names the people whom an agent asks for more. Raises BadValue, BadDuration.
        """
        self.limits: BudgetLimits = read_budget(
            {
                "tokens": tokens,
                "money": money,
                "calls": calls,
                "tools": tools,
                "time": time,
                "per_tool": per_tool,
                "warn": warn,
                "of": of,
            }
        )

    def __repr__(self) -> str:
        return f"Budget({', '.join(f'{unit}={limit}' for unit, limit in self.limits.limits.items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self.limits == other.limits

    def __hash__(self) -> int:
        return hash(repr(self))


def limits_of(budget: Budget | None) -> BudgetLimits | None:
    """Return the limits of a budget, if there is one. Raises BadValue for anything else."""
    anything: object = budget  # type hints are not checked at run time
    if anything is None:
        return None
    if not isinstance(anything, Budget):
        raise BadValue(
            f"budget={anything!r} is not a weft.Budget.",
            hint='Write budget=weft.Budget(money="2 USD", calls=20).',
            code="value.bad_policy",
        )
    return anything.limits


def amounts_of(added: Budget | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the amounts by which a budget is raised, as text and numbers by unit."""
    if not isinstance(added, Budget):
        return added
    return {
        unit.partition(":")[0] if unit.startswith(MONEY) else unit: _amount(unit, amount)
        for unit, amount in added.limits.limits.items()
    }


def _amount(unit: str, amount: int) -> str | int:
    if unit.startswith(MONEY):
        return amount_text(unit, amount)
    return f"{amount}ms" if unit == "time" else amount
