"""A subscription as one run that lives for years: a bill each month, plan changes prorated to the day, cancel at any time."""
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import weft

app = weft.App()
CENTS_PER_DAY = {"basic": 100, "team": 500}
MONTH = timedelta(days=30)


@dataclass
class Change:
    plan: Literal["basic", "team", "end"]


@app.step(effect="irreversible")
async def bill(customer: str, cents: int, reason: str) -> str:
    print("bill", customer, cents, reason)
    return f"bill-{customer}-{cents}"


def prorated(old: str, new: str, left: timedelta) -> int:
    """What the rest of the month costs more, or less, by whole days."""
    return (CENTS_PER_DAY[new] - CENTS_PER_DAY[old]) * left.days


@app.workflow
async def subscription(ctx: weft.Context, customer: str, plan: Literal["basic", "team"] = "basic", months: int = 120) -> int:
    total = 0
    for _ in range(months):
        begun = await ctx.now()
        cents = CENTS_PER_DAY[plan] * MONTH.days
        await bill(customer, cents, plan)
        total += cents
        while left := await remaining(ctx, begun):
            change = await ctx.receive("change", Change, timeout=left, default=None)
            if change is None:
                break
            if change.plan == "end":
                return total
            extra = prorated(plan, change.plan, begun + MONTH - await ctx.now())
            plan = change.plan
            await bill(customer, extra, f"change to {plan}")
            total += extra
    return total


async def remaining(ctx: weft.Context, begun: datetime) -> timedelta | None:
    left = begun + MONTH - await ctx.now()
    return left if left > timedelta(0) else None


if __name__ == "__main__":
    print(app.run(subscription("ann", months=0), id="subscription-ann"))
