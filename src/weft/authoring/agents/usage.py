"""Count what a run used."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from weft.agents.models.step import ModelAnswer
from weft.authoring.agents.reply import Usage
from weft.core.budgets import MILLIONTHS


def with_answer(usage: Usage, answer: ModelAnswer) -> Usage:
    """Add what an answer used. The money is known only while every model that answered has prices."""
    is_priced = answer.money is not None and (usage.money is not None or not usage.calls)
    money = (usage.money or Decimal(0)) + Decimal(answer.money or 0) / MILLIONTHS if is_priced else None
    return msgspec.structs.replace(
        usage,
        input=usage.input + answer.usage.input,
        cached=usage.cached + answer.usage.cached,
        output=usage.output + answer.usage.output,
        reasoning=usage.reasoning + answer.usage.reasoning,
        calls=usage.calls + 1,
        money=money,
        currency=answer.currency or usage.currency,
    )
