"""Budgets as people write them: "2.50 USD", "30m", and mappings of units. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from weft.core.budgets import MILLIONTHS, MONEY, TOOL, WARN_PARTS, BudgetLimits, amount_text
from weft.core.durations import duration_ms
from weft.core.findings import did_you_mean
from weft.core.values import preview_text
from weft.errors import BadValue

AMOUNT_MAX = 10**15
"""Anything larger is a mistake."""
_CURRENCY = re.compile(r"[A-Z]{3}")
_MONEY_HINT = 'Write the amount and the currency: money="2.50 USD".'
UNITS = ("tokens", "money", "calls", "tools", "time", "per_tool")
FIELDS = (*UNITS, "warn", "of")


def read_money(value: object, currency: str = "") -> tuple[int, str]:
    """Read an amount of money, as millionths and the currency. Raises BadValue."""
    text = f"{value} {currency}" if isinstance(value, Decimal) else value
    number, _, code = text.strip().partition(" ") if isinstance(text, str) else ("", "", "")
    code = code.strip() or currency
    try:
        exact = Decimal(number) * MILLIONTHS
    except InvalidOperation:
        raise _bad_field_error("money", value, _MONEY_HINT) from None
    if not exact.is_finite() or not 0 <= exact <= AMOUNT_MAX:
        raise _bad_field_error("money", value, _MONEY_HINT)
    if not _CURRENCY.fullmatch(code):
        raise _bad_field_error("money", value, f"{_MONEY_HINT} A currency has three capital letters.")
    if exact != exact.to_integral_value():
        raise _bad_field_error("money", value, "Money is counted in millionths of its currency.")
    return int(exact), code


def check_amount(unit: str, value: object) -> int:
    """Check a whole number and return it. Raises BadValue."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= AMOUNT_MAX:
        raise _bad_field_error(unit, value, f"Write a whole number: {unit}=100.")
    return value


def read_budget_limits(given: Mapping[str, Any]) -> dict[str, int]:
    """Read the units of a budget, by unit of the ledger. Raises BadValue, BadDuration."""
    limits: dict[str, int] = {}
    for unit, value in given.items():
        if value is None:
            continue
        if unit == "money":
            amount, currency = read_money(value)
            limits[f"{MONEY}{currency}"] = amount
        elif unit == "time":
            limits["time"] = duration_ms(value)
        elif unit == "per_tool":
            if not isinstance(value, Mapping):
                raise _bad_field_error(unit, value, 'Write the calls by tool: per_tool={"refund": 2}.')
            limits |= {f"{TOOL}{name}": check_amount(f"per_tool {name}", count) for name, count in value.items()}
        else:
            limits[unit] = check_amount(unit, value)
    return limits


def read_added(given: Mapping[str, Any], currency: str = "") -> dict[str, int]:
    """Read amounts by which limits are raised, as numbers or as text. Raises BadValue, BadDuration.

    Calls of one tool are ``tool:NAME``. Money without a currency is in that of the budget.
    """
    added: dict[str, int] = {}
    for unit, value in given.items():
        plain = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        if unit == "money":
            text = f"{value} {currency}" if isinstance(value, int | Decimal) or " " not in str(value).strip() else value
            amount, found = read_money(text)
            added[f"{MONEY}{found}"] = amount
        elif unit == "time":
            added["time"] = duration_ms(value)
        elif unit in ("tokens", "calls", "tools") or unit.startswith(TOOL):
            added[unit] = check_amount(unit, plain)
        else:
            raise _unknown_unit_error(unit, ("tokens", "money", "calls", "tools", "time", f"{TOOL}NAME"))
    if not added or not all(added.values()):
        raise BadValue("Nothing would be added.", hint="Give at least one amount above 0.", code="value.bad_policy")
    return added


def _unknown_unit_error(unit: object, known: Sequence[str]) -> BadValue:
    near = did_you_mean(str(unit), known)
    return BadValue(
        f"A budget has no {preview_text(unit)}.{f' {near}' if near else ''}",
        hint=f"It can have {', '.join(known)}.",
        code="value.bad_policy",
    )


def read_budget(given: object) -> BudgetLimits:
    """Read a budget from a mapping, as documents and requests have it. Raises BadValue, BadDuration."""
    if not isinstance(given, Mapping):
        raise _bad_field_error("budget", given, "Write a mapping of limits: {tokens: 50000, calls: 20}.")
    unknown = [name for name in given if name not in FIELDS]
    if unknown:
        raise _unknown_unit_error(unknown[0], FIELDS)
    limits = read_budget_limits({name: value for name, value in given.items() if name in UNITS})
    if not limits:
        raise BadValue(
            "A budget must limit something.",
            hint=f"Give at least one of {', '.join(UNITS)}.",
            code="value.bad_policy",
        )
    return BudgetLimits(
        limits=limits, warn=_read_warn_share(given.get("warn", 0.8)), of=_read_people(given.get("of", ()))
    )


def budget_document(budget: BudgetLimits) -> dict[str, Any]:
    """Return a budget as a mapping that ``read_budget`` reads."""
    found: dict[str, Any] = {"warn": budget.warn / WARN_PARTS, "of": list(budget.of)}
    per_tool: dict[str, int] = {}
    for unit, limit in budget.limits.items():
        if unit.startswith(MONEY):
            found["money"] = amount_text(unit, limit)
        elif unit.startswith(TOOL):
            per_tool[unit.removeprefix(TOOL)] = limit
        else:
            found[unit] = f"{limit}ms" if unit == "time" else limit
    return {**found, "per_tool": per_tool} if per_tool else found


def _read_warn_share(value: object) -> int:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise _bad_field_error(
            "warn", value, "Write the part of a limit at which to warn, from 0 (never) to 1: warn=0.8."
        )
    return round(value * WARN_PARTS)


def _read_people(value: object) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise _bad_field_error("of", value, 'Write who is told and asked: of=["ann", "role:finance"].')
    return list(names)


def _bad_field_error(what: str, value: object, hint: str) -> BadValue:
    return BadValue(f"{what}={preview_text(value)} cannot be in a budget.", hint=hint, code="value.bad_policy")
