"""Budgets: what calls may cost and did cost, by unit, and the limits of a run. Integers only. Pure.

The ledger knows units by name: ``tokens``, ``calls``, ``tools``, ``time`` (milliseconds), ``money:USD`` (millionths of
the currency) and ``tool:NAME`` (calls of one tool).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from weft.core.durations import format_ms
from weft.core.plurals import pluralize

MILLIONTHS = 1_000_000
"""Money is counted in millionths of its currency."""
MONEY = "money:"
"""The prefix of the units for money, before the name of the currency."""
TOOL = "tool:"
"""The prefix of the units for calls of one tool, before its name."""
OUTPUT_LEAST = 256
"""Fewer output tokens than this are of no use: a call that could not have as many is refused."""
WARN_PARTS = 1_000
"""``BudgetLimits.warn`` is in thousandths of the limits."""


class Amounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much of each unit."""

    tokens: int = 0
    """In and out."""
    money: int = 0
    """In millionths of ``currency``."""
    calls: int = 0
    """Calls of models."""
    tools: int = 0
    """Calls of tools."""
    time: int = 0
    """Milliseconds in which calls were in hands, without waits."""
    per_tool: Mapping[str, int] = {}
    """Calls by the name of the tool."""
    currency: str = ""
    """The currency of ``money``."""


class Cover(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call may cost at most. It is reserved before the call is handed out.

    With ``least``, less may be reserved if less is left, by a shorter output: between ``least`` with ``output_least``
    tokens and ``amounts`` with ``output`` tokens.
    """

    amounts: Amounts
    least: Amounts | None = None
    output: int = 0
    output_least: int = 0


class BudgetLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The budget of a run: the limits by unit of the ledger."""

    limits: dict[str, int]
    warn: int = 0
    """At which part of a limit the run records a warning, in thousandths; 0 for never."""
    of: list[str] = []
    """Whom an agent asks for more."""


def units_of(amounts: Amounts) -> dict[str, int]:
    """Return the amounts by unit of the ledger, without those that are 0."""
    units = {
        "tokens": amounts.tokens,
        f"{MONEY}{amounts.currency}": amounts.money,
        "calls": amounts.calls,
        "tools": amounts.tools,
        "time": amounts.time,
    }
    for name, count in amounts.per_tool.items():
        units[f"{TOOL}{name}"] = count
    return {unit: amount for unit, amount in units.items() if amount}


def currency_of(limits: Mapping[str, int]) -> str:
    """Return the currency that limits have; empty if none of them is about money."""
    return next((unit.removeprefix(MONEY) for unit in limits if unit.startswith(MONEY)), "")


def larger_amounts(first: Amounts, second: Amounts) -> Amounts:
    """Return the larger amount of each unit."""
    return Amounts(
        tokens=max(first.tokens, second.tokens),
        money=max(first.money, second.money),
        calls=max(first.calls, second.calls),
        tools=max(first.tools, second.tools),
        time=max(first.time, second.time),
        currency=second.currency or first.currency,
    )


def spent_of(cover: Cover | None, reported: Amounts | None, elapsed_ms: int) -> Amounts | None:
    """Return what a call has used, from what its body reported. None if that is not known.

    Calls are counted when they are made. A call that may cost tokens or money, and whose body reported nothing, may
    have used all that was reserved for it.
    """
    if cover is None:
        return None if reported is None else msgspec.structs.replace(reported, time=0)
    covered = cover.amounts
    if reported is None:
        if covered.tokens or covered.money:
            return None
        reported = Amounts()
    return Amounts(
        tokens=reported.tokens,
        money=reported.money,
        currency=reported.currency or covered.currency,
        calls=covered.calls,
        tools=covered.tools,
        per_tool=covered.per_tool,
        time=elapsed_ms,
    )


_NOUNS = {"tokens": "token", "calls": "model call", "tools": "tool call"}


def amount_text(unit: str, amount: int) -> str:
    """Return an amount for people: "0.25 USD", "1m30s", "12,000 tokens"."""
    if unit.startswith(MONEY):
        return f"{money_text(amount)} {unit.removeprefix(MONEY)}"
    if unit == "time":
        return format_ms(amount)
    if unit.startswith(TOOL):
        return f"{pluralize(amount, 'call')} of {unit.removeprefix(TOOL)}"
    return pluralize(amount, _NOUNS[unit])


def money_text(millionths: int) -> str:
    """Return an amount of money with at least two decimal places."""
    sign, whole, part = "-" if millionths < 0 else "", *divmod(abs(millionths), MILLIONTHS)
    return f"{sign}{whole}.{f'{part:06}'.rstrip('0').ljust(2, '0')}"
