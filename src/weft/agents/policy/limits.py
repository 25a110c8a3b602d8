"""Read the limits of a policy: how much of each unit a tenant has in a window of time."""

from __future__ import annotations

import re
from decimal import Decimal

from weft.agents.policy.rule_fields import AT_START, read_subjects, read_when
from weft.agents.policy.rules import RUNS, LimitRule, WindowLength
from weft.core.budgets import MILLIONTHS, TOOL
from weft.core.budgets import MONEY as MONEY_UNIT
from weft.documents.fields import Fields

WINDOWS: dict[str, WindowLength] = {"minute": "minute", "hour": "hour", "day": "day", "month": "month"}
COUNTED = (RUNS, "tokens", "calls", "tools")
UNITS = (*COUNTED, "money", "time", "per_tool")
MONEY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ([A-Z]{3})")


def read_limit_rule(rule: Fields, version: str) -> LimitRule | None:
    """Read a rule with limit. Returns None after reporting a problem."""
    limit = Fields(rule.raw["limit"], rule.place("limit"), rule.problems, (*UNITS, "per"))
    to = read_subjects(rule, "to")
    when = read_when(rule, (AT_START,))
    if limit.raw and "per" not in limit:
        rule.problems.add("missing_field", limit.at, "per is missing.", "Write per: day.")
    per = limit.choice("per", WINDOWS, None)
    money, currency = _money(limit)
    amounts = {unit: amount for unit in COUNTED if (amount := limit.integer(unit)) is not None}
    if money:
        amounts[f"{MONEY_UNIT}{currency}"] = money
    if time := limit.duration("time"):
        amounts["time"] = time
    amounts |= _per_tool(limit)
    if when is not None and AT_START in when.names and set(amounts) - {RUNS}:
        message = f"`{AT_START}` is known only where runs start, and this limit counts calls."
        rule.problems.add("unknown_name", rule.place("when"), message, "Limit runs in a rule of its own.")
    if limit.raw and not any(unit in limit for unit in UNITS):
        rule.problems.add("missing_field", limit.at, f"a limit needs one of {', '.join(UNITS)}.")
    if per is None or not amounts:
        return None
    return LimitRule(amounts=amounts, per=per, to=to, when=when, version=version)


def _money(limit: Fields) -> tuple[int, str]:
    if "money" not in limit:
        return 0, ""
    text = limit.raw["money"]
    found = MONEY.fullmatch(text) if isinstance(text, str) else None
    if found is None or not Decimal(found[1]):
        limit.wrong("money", 'an amount and a currency, such as "20 USD"')
        return 0, ""
    return int(Decimal(found[1]) * MILLIONTHS), found[2]


def _per_tool(limit: Fields) -> dict[str, int]:
    raw = limit.raw.get("per_tool", {})
    if not isinstance(raw, dict):
        limit.wrong("per_tool", "a mapping of tools to numbers of calls")
        return {}
    calls = Fields(raw, limit.place("per_tool"), limit.problems, tuple(raw))
    return {f"{TOOL}{tool}": count for tool in raw if (count := calls.integer(tool)) is not None}
