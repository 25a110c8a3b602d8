"""What calls of an agent may cost at most, so that their budget can be reserved before they are made."""

from __future__ import annotations

from collections.abc import Sequence

from weft.agents.models.aliases import ModelAlias, ModelAliases
from weft.core.budgets import OUTPUT_LEAST, Amounts, Cover
from weft.core.events import Policy
from weft.errors import UsageError
from weft.ports.models import ModelUsage

SPARE = 1.1
"""Estimates of the input may be wrong by this factor."""


def model_cover(alias: ModelAlias, input_tokens: int) -> Cover:
    """Return what a model call may cost: its estimated input and all its allowed output, or less output."""
    prompt = int(input_tokens * SPARE) + 1
    least = min(OUTPUT_LEAST, alias.output)
    return Cover(
        amounts=_amounts(alias, prompt, alias.output),
        least=_amounts(alias, prompt, least),
        output=alias.output,
        output_least=least,
    )


def _amounts(alias: ModelAlias, prompt: int, output: int) -> Amounts:
    prices = alias.prices
    return Amounts(
        tokens=prompt + output,
        money=prices.cost(ModelUsage(input=prompt, output=output)) if prices is not None else 0,
        currency=prices.currency if prices is not None else "",
        calls=1,
        time=alias.policy.timeout_ms,
    )


def tool_cover(tool: str, policy: Policy | None = None) -> Cover:
    """Return what a tool call may cost. One that is no task takes no time itself."""
    return Cover(amounts=Amounts(tools=1, per_tool={tool: 1}, time=policy.timeout_ms if policy is not None else 0))


def check_prices(agent: str, models: Sequence[str], aliases: ModelAliases, currency: str) -> None:
    """Raise UsageError (``budget.no_price``) if money is limited and a model of the agent has no price in it."""
    for name in models if currency else ():
        prices = aliases.get(name).prices
        if prices is None or prices.currency != currency:
            lacks = "has no prices" if prices is None else f"has prices in {prices.currency}"
            raise UsageError(
                f"The budget of {agent} limits money in {currency}, and its model {name} {lacks}.",
                hint=f'Declare them: app.model("{name}", prices=weft.Prices("0.25", "2.00", currency="{currency}")).',
                code="budget.no_price",
            )
