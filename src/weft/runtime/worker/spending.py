"""What the attempt of a task has spent: what its body reported, and how long it took."""

from __future__ import annotations

import msgspec

from weft.core.budgets import Amounts, Cover, spent_of
from weft.core.commands import ReportTaskFailed, ReportTaskSucceeded
from weft.runtime.worker.flight import Flight, Report


def note_spending(flight: Flight, tokens: int, money: int, currency: str) -> None:
    """Note what a body has spent so far. May be called on any thread."""
    known = flight.reported or Amounts()
    flight.reported = Amounts(
        tokens=known.tokens + tokens, money=known.money + money, currency=currency or known.currency
    )


def with_spent(flight: Flight, report: Report, elapsed_seconds: float) -> Report:
    """Return the report with what the attempt has spent."""
    cover: Cover | None = flight.effect.cover
    spent = spent_of(cover, flight.reported, int(elapsed_seconds * 1000))
    if spent is None or not isinstance(report, ReportTaskSucceeded | ReportTaskFailed):
        return report
    return msgspec.structs.replace(report, spent=spent)
