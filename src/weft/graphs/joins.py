"""Read how branches are joined at a node: ``join``, or ``fan_in`` and ``wait_for_all`` in the older formats."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from weft.core.findings import At
from weft.core.graph.folded import FoldedJoin
from weft.core.graph.model import Deadline, Early, FanInNeed, Join
from weft.documents.fields import Fields, describe
from weft.graphs.data import fold_merge

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%")
WAITS = {"all": FanInNeed(), "any": FanInNeed("count", 1)}
DEADLINE = ("timeout", "on_timeout")
LATE: dict[str, Early] = {"cancel": "cancel", "abandon": "abandon", "merge": "late_merge"}
EARLY: dict[str, Early] = {
    "cancel": "cancel",
    "abandon": "abandon",
    "late_merge": "late_merge",
    "allow_late_merge": "late_merge",
}


class JoinFields(NamedTuple):
    """How a node joins branches, what a fan-in waits for, and for how long."""

    join: Join = "plain"
    fan_in: FoldedJoin | None = None
    deadline: Deadline | None = None


def fold_join(node: Fields) -> JoinFields:
    """Read how branches are joined at a node."""
    key = node.spelling("join", "fan_in")
    waits = node.flag("wait_for_all", default=False) if "wait_for_all" in node else None
    if key not in node:
        listed = len(set(node.texts("dependencies"))) > 1
        _refuse_fan_in_fields(node)
        return JoinFields("edges" if waits or (waits is None and listed) else "plain")
    if key == "join" and waits is not None:
        node.spelling("join", "wait_for_all")
    raw = node.raw[key]
    deadline = _read_deadline(node) if key == "join" and isinstance(raw, dict) else None
    if key == "join" and (raw == "edges" or (isinstance(raw, dict) and raw.get("wait") == "edges")):
        _refuse_fan_in_fields(node)
        if isinstance(raw, dict):
            Fields(raw, node.place(key), node.problems, ("wait", *DEADLINE))
        return JoinFields("edges", None, deadline)
    need, of = _read_need(node, key)
    if waits and key == "fan_in" and need.kind != "all":
        message = "wait_for_all waits for all edges, but fan_in for fewer."
        node.problems.add("two_joins", node.place("wait_for_all"), message, "Remove wait_for_all.")
    named = node.text(node.spelling("of", "joins_node"))
    if of and named:
        node.problems.add(
            "two_spellings", node.place("of"), "join.of and of are two names for the same field; use one of them."
        )
    early_key = node.spelling("late", "on_early_complete")
    early: Early = node.choice(early_key, LATE if early_key == "late" else EARLY, "cancel")
    merge = fold_merge(node) if "merge" in node else None
    fan_in = FoldedJoin(node.place(key), need, of or named, merge, node.place("merge"), early)
    return JoinFields("fan_in", fan_in, deadline)


def _read_deadline(node: Fields) -> Deadline | None:
    """Read the timeout of a join, and what happens after it."""
    join = Fields(node.raw["join"], node.place("join"), node.problems, node.raw["join"])
    proceeds = join.choice("on_timeout", {"fail": False, "proceed": True}, default=False)
    if "timeout" not in join:
        if "on_timeout" in join:
            node.problems.add("missing_field", join.at, "on_timeout needs a timeout.")
        return None
    ms = join.duration("timeout")
    return Deadline(ms, proceeds) if ms else None


def _refuse_fan_in_fields(node: Fields) -> None:
    for key in ("merge", "late", "on_early_complete", "of", "joins_node"):
        if key in node:
            node.problems.add(
                "not_a_fan_in", node.place(key), f"{key} belongs to a fan-in.", "Write join: all, any or at_least."
            )


def _read_need(node: Fields, key: str) -> tuple[FanInNeed, str]:
    raw = node.raw[key]
    if isinstance(raw, str) and raw in WAITS:
        return WAITS[raw], ""
    known = ("at_least", "of", "wait", *DEADLINE) if key == "join" else ("m_of_n",)
    if not isinstance(raw, dict):
        words = "all, any, edges or {at_least: 3}" if key == "join" else "all, any or {m_of_n: 3}"
        node.problems.add("unknown_word", node.place(key), f"must be {words}, not {describe(raw)}.")
        return FanInNeed(), ""
    join = Fields(raw, node.place(key), node.problems, known)
    if key == "join" and "wait" in join:
        if "at_least" in join:
            join.spelling("wait", "at_least")
        return join.choice("wait", {**WAITS, "edges": FanInNeed()}, FanInNeed()), join.text("of")
    if join.raw and known[0] not in join:
        join.needed("wait or at_least" if key == "join" and set(join.raw) & {"wait", *DEADLINE} else known[0])
    return _read_count(join.raw.get(known[0]), join.place(known[0]), join), join.text("of") if key == "join" else ""


def _read_count(raw: Any, at: At, join: Fields) -> FanInNeed:
    if raw is None:
        return FanInNeed()
    if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 1:
        return FanInNeed("count", raw)
    found = _PERCENT.fullmatch(raw) if isinstance(raw, str) and at[-1] == "at_least" else None
    if found is not None and 0 < float(found[1]) <= 100:
        return FanInNeed("percent", percent=float(found[1]))
    join.problems.add(
        "wrong_type", at, f"must be an integer of at least 1, or a percentage such as 90%, not {describe(raw)}."
    )
    return FanInNeed()
