"""How tokens meet at a node: `join`, or `fan_in` and `wait_for_all` in the spelling of the seeds."""

from __future__ import annotations

import re
from typing import Any

from weft.core.graph.findings import At
from weft.core.graph.folded import FoldedJoin
from weft.core.graph.model import Early, Join, Need
from weft.graphs.data import fold_merge
from weft.graphs.fields import Fields, kind

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%")
LATE: dict[str, Early] = {"cancel": "cancel", "abandon": "abandon", "merge": "late_merge"}
EARLY: dict[str, Early] = {
    "cancel": "cancel",
    "abandon": "abandon",
    "late_merge": "late_merge",
    "allow_late_merge": "late_merge",
}


def fold_join(node: Fields) -> tuple[Join, FoldedJoin | None]:
    """How the node joins, and what a fan-in waits for."""
    key = node.spelling("join", "fan_in")
    waits = node.flag("wait_for_all", default=False) if "wait_for_all" in node else None
    if key not in node:
        listed = len(set(node.texts("dependencies"))) > 1
        joins: Join = "edges" if waits or (waits is None and listed) else "plain"
        _refuse_fan_in_fields(node)
        return joins, None
    if key == "join" and waits is not None:
        node.spelling("join", "wait_for_all")
    if key == "join" and node.raw[key] == "edges":
        _refuse_fan_in_fields(node)
        return "edges", None
    need, of = _read_need(node, key)
    if waits and key == "fan_in" and need.kind != "all":
        message = "wait_for_all waits for all edges, and this fan_in for less."
        node.problems.add("two_joins", node.place("wait_for_all"), message, "Leave wait_for_all out.")
    named = node.text(node.spelling("of", "joins_node"))
    if of and named:
        node.problems.add("two_spellings", node.place("of"), "join.of and of say the same thing.")
    early_key = node.spelling("late", "on_early_complete")
    early: Early = node.choice(early_key, LATE if early_key == "late" else EARLY, "cancel")
    merge = fold_merge(node) if "merge" in node else None
    return "fan_in", FoldedJoin(node.place(key), need, of or named, merge, node.place("merge"), early)


def _refuse_fan_in_fields(node: Fields) -> None:
    for key in ("merge", "late", "on_early_complete", "of", "joins_node"):
        if key in node:
            node.problems.add(
                "not_a_fan_in", node.place(key), f"{key} belongs to a fan-in.", "Say which: join: all, any or at_least."
            )


def _read_need(node: Fields, key: str) -> tuple[Need, str]:
    raw = node.raw[key]
    if raw == "all":
        return Need(), ""
    if raw == "any":
        return Need("count", 1), ""
    known = ("at_least", "of") if key == "join" else ("m_of_n",)
    if not isinstance(raw, dict):
        words = "all, any, edges or {at_least: 3}" if key == "join" else "all, any or {m_of_n: 3}"
        node.problems.add("unknown_word", node.place(key), f"must be {words}, not {kind(raw)}.")
        return Need(), ""
    join = Fields(raw, node.place(key), node.problems, known)
    if join.raw and known[0] not in join:
        join.needed(known[0])
    return _read_count(join.raw.get(known[0]), join.place(known[0]), join), join.text("of") if key == "join" else ""


def _read_count(raw: Any, at: At, join: Fields) -> Need:
    if raw is None:
        return Need()
    if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 1:
        return Need("count", raw)
    found = _PERCENT.fullmatch(raw) if isinstance(raw, str) and at[-1] == "at_least" else None
    if found is not None and 0 < float(found[1]) <= 100:
        return Need("percent", percent=float(found[1]))
    join.problems.add("wrong_type", at, f"must be a number from 1, or a share like 90%, not {kind(raw)}.")
    return Need()
