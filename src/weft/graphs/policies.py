"""Read the limits of a run or a node, who must agree to changes, and how a node is undone."""

from __future__ import annotations

from weft.core.budget_text import read_budget
from weft.core.budgets import BudgetLimits
from weft.core.graph.folded import FoldedUndo, Source
from weft.core.graph.model import Limits
from weft.documents.fields import Fields
from weft.documents.policies import read_retry
from weft.errors import WeftError

LIMITS = ("time", "hops", "tokens", "fan_out", "deadline_s", "max_hops", "max_fanout")
BUDGET = ("tokens", "money", "calls", "tools", "time", "per_tool", "warn", "of")
CHANGES = ("review",)
UNDO = ("step", "with", "retry", "timeout", "action", "timeout_sec")


def fold_limits(holder: Fields, *, of_run: bool = False) -> Limits:
    """Read the limits of a run (at the top of a document), which may have a budget, or of a node."""
    if "limits" not in holder:
        return Limits()
    known = (*LIMITS, "budget") if of_run else LIMITS
    limits = Fields(holder.raw["limits"], holder.place("limits"), holder.problems, known)
    return Limits(
        time_ms=limits.duration(limits.spelling("time", "deadline_s")),
        hops=limits.integer(limits.spelling("hops", "max_hops")) or 0,
        tokens=limits.integer("tokens") or 0,
        fan_out=limits.integer(limits.spelling("fan_out", "max_fanout")) or 0,
        budget=fold_budget(limits) if of_run else None,
    )


def fold_budget(holder: Fields) -> BudgetLimits | None:
    """Read what a run or an agent may spend: ``budget: {tokens: 50000, money: "2 USD"}``."""
    if "budget" not in holder:
        return None
    budget = Fields(holder.raw["budget"], holder.place("budget"), holder.problems, BUDGET)
    try:
        return read_budget(budget.raw) if budget.raw else None
    except WeftError as error:
        holder.problems.add("bad_budget", holder.place("budget"), error.message, error.hint)
        return None


def fold_review(document: Fields) -> list[str]:
    """Read who must agree to every patch of a run: ``changes: {review: [team:ops]}``."""
    if "changes" not in document:
        return []
    return Fields(document.raw["changes"], document.place("changes"), document.problems, CHANGES).texts("review")


def fold_undo(node: Fields) -> FoldedUndo | None:
    """Read the step that undoes the node."""
    key = node.spelling("undo", "compensator")
    if key not in node:
        return None
    raw = node.raw[key]
    if isinstance(raw, str) and raw:
        return FoldedUndo(raw)
    undo = Fields(raw, node.place(key), node.problems, UNDO)
    step = undo.text(undo.spelling("step", "action"))
    if not step:
        if undo.raw and undo.spelling("step", "action") not in undo:
            undo.needed("step")
        return None
    given = undo.raw.get("with")
    return FoldedUndo(
        step,
        Source(given, undo.place("with")) if given is not None else None,
        read_retry(undo),
        undo.duration(undo.spelling("timeout", "timeout_sec")),
    )
