"""Counts of what models were asked and what that cost, by alias. Never by run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.agents.models.aliases import ModelAlias
from weft.agents.models.failures import ModelFailed
from weft.ports.models import ModelReply


class ModelCounts(msgspec.Struct):
    """What one model was asked by this host since it started."""

    calls: dict[str, int] = {}
    """By outcome: answered, reused, refused, unavailable, rejected, context, failed."""
    tokens: dict[str, int] = {}
    """By kind: input, cached, output, reasoning."""
    money: dict[str, int] = {}
    """By currency, in millionths."""
    seconds: float = 0.0


class ModelMeter:
    """Counts calls."""

    def __init__(self) -> None:
        self.counts: dict[str, ModelCounts] = {}

    def count_reply(self, alias: ModelAlias, reply: ModelReply, seconds: float, *, is_reused: bool) -> None:
        """Count a call that was answered."""
        outcome = "reused" if is_reused else "refused" if reply.finish == "refused" else "answered"
        counts = self._count(alias.name, outcome, seconds)
        usage = reply.usage
        used = {"input": usage.input, "cached": usage.cached, "output": usage.output, "reasoning": usage.reasoning}
        for kind, tokens in used.items():
            counts.tokens[kind] = counts.tokens.get(kind, 0) + tokens
        if alias.prices is not None:
            currency = alias.prices.currency
            counts.money[currency] = counts.money.get(currency, 0) + alias.prices.cost(usage)

    def count_failure(self, alias: ModelAlias, error: BaseException, seconds: float) -> None:
        """Count a call that failed."""
        known = isinstance(error, ModelFailed) and error.code.startswith("model.")
        outcome = error.code.removeprefix("model.") if known and isinstance(error, ModelFailed) else "failed"
        self._count(alias.name, outcome, seconds)

    def _count(self, name: str, outcome: str, seconds: float) -> ModelCounts:
        counts = self.counts.setdefault(name, ModelCounts())
        counts.calls[outcome] = counts.calls.get(outcome, 0) + 1
        counts.seconds += seconds
        return counts


def span_attributes(alias: ModelAlias, turn: int, reply: ModelReply | None) -> Mapping[str, Any]:
    """Return the attributes of a span by the conventions for generative AI, without content."""
    found: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": alias.model,
        "server.address": alias.url,
        "weft.model": alias.name,
        "weft.turn": turn,
    }
    if reply is not None:
        found |= {
            "gen_ai.response.model": reply.model,
            "gen_ai.response.finish_reasons": reply.finish,
            "gen_ai.usage.input_tokens": reply.usage.input,
            "gen_ai.usage.output_tokens": reply.usage.output,
            "gen_ai.usage.cached_tokens": reply.usage.cached,
        }
    return found
