"""Events of budgets. Import them from ``weft.core.events``."""

from __future__ import annotations

from weft.core.event_parts import LogEvent


class BudgetSet(LogEvent, frozen=True, kw_only=True, tag="budget_set"):
    """The run has a budget, which covers the run and everything below it."""

    limits: dict[str, int]
    """By unit of the ledger, in whole numbers: money in millionths, time in milliseconds."""
    warn: int = 0
    """At which part of a limit a warning is recorded, in thousandths; 0 for never."""
    of: list[str] = []


class BudgetRaised(LogEvent, frozen=True, kw_only=True, tag="budget_raised"):
    """Somebody raised limits of the run's budget by these amounts."""

    added: dict[str, int]
    by: str = ""
    reason: str = ""


class BudgetWarned(LogEvent, frozen=True, kw_only=True, tag="budget_warned"):
    """The run and everything below it have spent so much of a unit that a warning was due."""

    unit: str
