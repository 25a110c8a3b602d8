"""The pages of the errors of budgets: what happened, why, what to do."""

from __future__ import annotations

BUDGET_PAGES: dict[str, tuple[str, str, str]] = {
    "budget.exceeded": (
        "Not enough of a budget is left for a call, so it was not made.",
        (
            "What a call may cost at most is reserved in every budget above it before it is made. What is spent and "
            "what other calls have reserved leave less than that."
        ),
        "weft budget RUN shows what was spent and by whom. Raise it with weft budget RUN --add, then retry the run.",
    ),
    "budget.no_price": (
        "A budget limits money, and the price of something that it covers is not known in its currency.",
        "Without a price, nobody could say before a call what it may cost.",
        "Give every model that the run may use prices in this currency, or limit tokens instead of money.",
    ),
}
