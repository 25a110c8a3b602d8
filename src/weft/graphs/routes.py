"""Read where a run goes from a node: ``next``, ``catch`` and ``repeat``.

The older formats write ``branch``, ``loop``, ``dependents`` and ``transitions`` instead.

The entries of ``next`` are tiers, which are tried in order, as in if / elif / else. A branch replaces the dependents. A
loop exits through the branch if there is one, or else through its ``break_path``, or else through the dependents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.findings import At
from weft.core.graph.folded import FoldedRepeat, FoldedRoute, Source
from weft.documents.fields import Fields, describe
from weft.documents.spellings import fold_condition
from weft.graphs.agents import CHOOSE

ENTRY = ("when", "condition", "to", "for_each", "foreach", "as", "width", "copies", "spawn")
TRANSITION = ("from", "priority", "id", "ref", *ENTRY)
CATCH = ("error", "to")
REPEAT = ("while", "until", "at_most", "back_to", "exhausted")
LOOP = ("enabled", "condition", "max_iterations", "loop_back_to", "break_path", "timeout_path")
BRANCH = ("enabled", "type", "rules", "default", "available_next_nodes")
RULE = ("condition", "next_nodes")
FOREACH = ("collection", "item_var")
COPIES_MAX = 100_000

Inline = Callable[[Any], Any]
"""Replaces blob references in a folded condition by their content."""


class NodeRoutes:
    """Reads where one node leads.

    ``way`` is the field that says so. If there is one, dependents and dependencies add no edges. ``plain_when`` is the
    condition of the edges that they add. ``targets`` has all names, even those of replaced edges.
    """

    def __init__(self, name: str, node: Fields, inline: Inline) -> None:
        self.name = name
        self.node = node
        self.routes: list[FoldedRoute] = []
        self.way = ""
        self.plain_when: str | None = None
        self.plain_at: dict[str, At] = {}
        self.targets: set[str] = set()
        self.ends_unmatched = False
        self._inline = inline

    def read(self, transitions: list[tuple[Any, At]]) -> FoldedRepeat | None:
        """Read all routes. ``transitions`` are those that the document lists for this node."""
        node = self.node
        branch = _enabled_block(node, "branch", BRANCH)
        loop = _enabled_block(node, "loop", LOOP)
        if "next" in node:
            self._claim_spelling("next", node.place("next"))
            self._read_next()
        if "choose" in node:
            self._claim_spelling("choose", node.place("choose"))
            self._read_choose()
        if branch is not None:
            self._claim_spelling("branch", branch.at)
            self._read_branch(branch)
        if transitions:
            self._claim_spelling("transitions", node.at)
            self._read_transitions(transitions)
        if "rejection_path" in node:
            self._read_rejection()
        if "dependents" in node:
            self._read_dependents()
        if loop is not None and "break_path" in loop:
            self._read_break(loop)
        self._read_catch()
        return self._read_repeat(loop)

    def add_plain(self) -> None:
        """Add the edges of dependents and dependencies, unless another field says where the node leads."""
        if self.way:
            return
        when = self.plain_when
        self.routes += [
            FoldedRoute(target, at, 0 if when is None else -1, Source(when, at) if when else None)
            for target, at in self.plain_at.items()
        ]

    def _claim_spelling(self, way: str, at: At) -> None:
        if self.way:
            self.node.problems.add("two_spellings", at, f"{self.way} and {way} both say where {self.name} leads.")
        self.way = way

    def _read_dependents(self) -> None:
        at = self.node.place("dependents")
        for target in self.node.texts("dependents"):
            self.targets.add(target)
            self.plain_at.setdefault(target, at)
        if self.way in ("next", "transitions") and self.plain_at:
            message = f"dependents and {self.way} both say where {self.name} leads."
            self.node.problems.add("two_spellings", at, message)

    # --- next and transitions -------------------------------------------------------------------------------------

    def _read_next(self) -> None:
        raw = self.node.raw["next"]
        at = self.node.place("next")
        entries = raw if isinstance(raw, list) else [raw]
        always: int | None = None
        for tier, item in enumerate(entries):
            place = (*at, tier) if isinstance(raw, list) else at
            if isinstance(item, str) and item:
                routes = [FoldedRoute(item, place, tier)]
            elif isinstance(item, dict):
                routes = self._read_entry(Fields(item, place, self.node.problems, ENTRY), tier)
            else:
                self.node.problems.add(
                    "wrong_type", place, f"must be a node or a mapping with to, not {describe(item)}."
                )
                continue
            if always is not None and self.node.raw.get("fan_out") != "all":
                self.node.problems.add(
                    "never_tried",
                    place,
                    f"this entry is never tried, because entry {always} before it always matches.",
                    "To go to both at once, write one entry: to: [a, b].",
                )
            elif routes and routes[0].when is None:
                always = tier
            self.routes += routes

    def _read_transitions(self, transitions: list[tuple[Any, At]]) -> None:
        for raw, at in transitions:
            entry = Fields(raw, at, self.node.problems, TRANSITION)
            self.routes += self._read_entry(entry, _read_priority(entry))

    def _read_entry(self, entry: Fields, tier: int) -> list[FoldedRoute]:
        """Read the edges of one entry: one for each node in ``to``."""
        when_key = entry.spelling("when", "condition")
        when = None
        if entry.raw.get(when_key) is not None:
            when = self._read_condition(entry.raw[when_key], entry.place(when_key))
        each, name = _read_for_each(entry)
        copies_key = entry.spelling("copies", "spawn")
        copies = entry.integer(copies_key) or 0
        if copies > COPIES_MAX:
            entry.wrong(copies_key, f"at most {COPIES_MAX:,}")
        if each is not None and copies_key in entry:
            message = f"for_each and {copies_key} cannot be combined."
            entry.problems.add("two_fan_outs", entry.place(copies_key), message)
        width = entry.integer("width") or 0
        if width and each is None and not copies:
            entry.problems.add("wrong_type", entry.place("width"), "width belongs to for_each and copies.")
        if "to" not in entry and entry.raw:
            entry.needed("to")
        return [
            FoldedRoute(target, at, tier, when, None, each, name, copies, width)
            for target, at in _read_targets(entry, "to")
        ]

    def _read_condition(self, raw: Any, at: At) -> Source:
        return Source(self._inline(fold_condition(raw)), at)

    # --- branch ---------------------------------------------------------------------------------------------------

    def _read_branch(self, branch: Fields) -> None:
        kinds = {"conditional": "conditional", "agent_driven": "agent_driven"}
        if branch.choice("type", kinds, "conditional") == "agent_driven":
            self._read_choice(branch)
        else:
            self._read_rules(branch)
        last = max((route.tier for route in self.routes), default=-1) + 1
        self.routes += [FoldedRoute(target, at, last) for target, at in _read_targets(branch, "default", empty=True)]
        self.ends_unmatched = branch.raw.get("default") == []

    def _read_rules(self, branch: Fields) -> None:
        rules = branch.raw.get("rules", [])
        if not isinstance(rules, list):
            branch.wrong("rules", "a list")
            return
        for tier, raw in enumerate(rules):
            rule = Fields(raw, (*branch.place("rules"), tier), branch.problems, RULE)
            for key in RULE:
                if rule.raw and key not in rule:
                    rule.needed(key)
            if rule.raw.get("condition") is None:
                continue
            when = self._read_condition(rule.raw["condition"], rule.place("condition"))
            self.routes += [FoldedRoute(target, at, tier, when) for target, at in _read_targets(rule, "next_nodes")]

    def _read_choice(self, branch: Fields) -> None:
        """Read a branch whose agent picks the next nodes from a list."""
        self._need_agent(branch.place("type"), "agent_driven")
        self._add_choices(branch, "available_next_nodes", most=0)

    def _read_choose(self) -> None:
        """Read the nodes from which an agent picks, and where it goes without a choice."""
        choose = Fields(self.node.raw["choose"], self.node.place("choose"), self.node.problems, CHOOSE)
        self._need_agent(choose.at, "choose")
        if choose.raw and "of" not in choose:
            choose.needed("of")
        self._add_choices(choose, "of", most=choose.integer("at_most") or 0)
        last = max((route.tier for route in self.routes), default=-1) + 1
        self.routes += [FoldedRoute(target, at, last) for target, at in _read_targets(choose, "otherwise")]

    def _need_agent(self, at: At, what: str) -> None:
        if "agent" not in self.node and self.node.raw.get("type") != "agent":
            self.node.problems.add("no_agent", at, f"{what} needs an agent node.")

    def _add_choices(self, choice: Fields, key: str, *, most: int) -> None:
        """Add an edge to each node that may be chosen. If only one may be, no two of them fire."""
        for index, (target, at) in enumerate(_read_targets(choice, key)):
            when = Source(f'!("routed" in output) && "{target}" in output.next_nodes', at)
            self.routes.append(FoldedRoute(target, at, index if most == 1 else 0, when))

    # --- loops ----------------------------------------------------------------------------------------------------

    def _read_break(self, loop: Fields) -> None:
        exits = _read_targets(loop, "break_path", empty=True)
        self.targets.update(target for target, _ in exits)
        if self.way == "branch":
            return  # the branch is the normal exit of the loop
        self._claim_spelling("break_path", loop.place("break_path"))
        self.routes += [FoldedRoute(target, at, 0) for target, at in exits]

    def _read_repeat(self, loop: Fields | None) -> FoldedRepeat | None:
        node = self.node
        if "repeat" not in node and loop is None:
            return None
        if "repeat" in node and loop is not None:
            node.spelling("repeat", "loop")
        if "repeat" in node:
            fields = Fields(node.raw["repeat"], node.place("repeat"), node.problems, REPEAT)
            names = ("while" if "while" in fields else "until", "at_most", "back_to", "exhausted")
            if "while" in fields and "until" in fields:
                fields.problems.add("two_spellings", fields.place("until"), "a loop has while or until, not both.")
        else:
            assert loop is not None
            fields = loop
            names = ("condition", "max_iterations", "loop_back_to", "timeout_path")
        return self._repeat(fields, *names)

    def _repeat(self, fields: Fields, condition: str, most: str, back: str, exhausted: str) -> FoldedRepeat | None:
        if not fields.raw:
            return None
        if most not in fields:
            fields.needed(most)
        at_most = fields.integer(most)
        if at_most is None:
            return None
        when = None
        if fields.raw.get(condition) is not None:
            when = self._read_condition(fields.raw[condition], fields.place(condition))
        elif condition in fields:
            fields.wrong(condition, "a condition", f"Omit {condition} to repeat {most} times.")
            return None
        timeouts = None
        if exhausted in fields:
            timeouts = [FoldedRoute(target, at) for target, at in _read_targets(fields, exhausted, empty=True)]
            self.targets.update(route.to for route in timeouts)
            if when is None:
                message = f"{exhausted} is never taken: without a condition, the loop ends after {at_most} rounds."
                fields.problems.warn("never_taken", fields.place(exhausted), message)
        return FoldedRepeat(
            when,
            at_most,
            fields.text(back) or self.name,
            fields.at,
            until=condition == "until",
            exhausted=timeouts,
        )

    # --- the rest -------------------------------------------------------------------------------------------------

    def _read_rejection(self) -> None:
        """Read where a human node leads after a rejection."""
        node = self.node
        if self.way:
            message = f"rejection_path and {self.way} both say where {self.name} leads."
            node.problems.add("two_spellings", node.place("rejection_path"), message)
        self.routes += [FoldedRoute(target, at, 0) for target, at in _read_targets(node, "rejection_path", empty=True)]

    def _read_catch(self) -> None:
        raw = self.node.raw.get("catch")
        if "catch" not in self.node:
            return
        at = self.node.place("catch")
        first = max((route.tier for route in self.routes), default=0) + 1
        for index, item in enumerate(raw if isinstance(raw, list) else [raw]):
            place = (*at, index) if isinstance(raw, list) else at
            if isinstance(item, str) and item:
                self.routes.append(FoldedRoute(item, place, first + index, errors=[]))
                continue
            entry = Fields(item, place, self.node.problems, CATCH)
            if entry.raw and "to" not in entry:
                entry.needed("to")
            errors = self._read_caught_errors(entry)
            for target, target_at in _read_targets(entry, "to"):
                self.routes.append(FoldedRoute(target, target_at, first + index, errors=errors))

    def _read_caught_errors(self, entry: Fields) -> list[str]:
        """Return the types and codes of errors that an entry catches. Empty means any error, as ``*`` does."""
        errors = entry.texts("error")
        if "*" in errors:
            return []
        if any("*" in error for error in errors):
            entry.wrong("error", "a type or code of errors, or * for any error")
        return errors


def _enabled_block(node: Fields, key: str, known: tuple[str, ...]) -> Fields | None:
    """Return a block of the document, unless it has ``enabled: false``."""
    if key not in node:
        return None
    block = Fields(node.raw[key], node.place(key), node.problems, known)
    return block if block.flag("enabled", default=True) and block.raw else None


def _read_priority(entry: Fields) -> int:
    value = entry.raw.get("priority", 0)
    if not isinstance(value, int) or isinstance(value, bool):
        entry.wrong("priority", "an integer")
        return 0
    return value


def _read_targets(entry: Fields, key: str, *, empty: bool = False) -> list[tuple[str, At]]:
    """Return the nodes that a field names, each with its location."""
    if key not in entry:
        return []
    raw = entry.raw[key]
    if raw == [] and not empty:
        entry.problems.add("no_target", entry.place(key), "names no node.", "Name a node. A pass node can end a path.")
        return []
    names = entry.texts(key)
    seen: set[str] = set()
    twice = next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]
    if twice is not None:
        entry.problems.add(
            "twice", entry.place(key), f'"{twice}" is listed twice.', "To run it several times, write copies: 2."
        )
    return [
        (name, (*entry.place(key), index) if isinstance(raw, list) else entry.place(key))
        for index, name in enumerate(names)
    ]


def _read_for_each(entry: Fields) -> tuple[Source | None, str]:
    """Read the collection of a for_each as one expression, and the name of its items."""
    key = entry.spelling("for_each", "foreach")
    name = entry.name("as") or "item"
    if key not in entry:
        if "as" in entry:
            entry.problems.add("wrong_type", entry.place("as"), "as belongs to for_each.")
        return None, name
    raw = entry.raw[key]
    if key == "foreach" and isinstance(raw, dict):
        each = Fields(raw, entry.place(key), entry.problems, FOREACH)
        if each.raw and "collection" not in each:
            each.needed("collection")
        text = each.text("collection")
        return (Source(text, each.place("collection")) if text else None), each.name("item_var") or name
    if isinstance(raw, str) and raw.strip().startswith("${") and raw.strip().endswith("}"):
        return Source(raw.strip()[2:-1].strip(), entry.place(key)), name
    entry.wrong(key, "one ${…} that gives a list")
    return None, name
