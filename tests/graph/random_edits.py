"""Edits of drawn graphs, as people make them: nodes put in, taken out and renamed, edges led elsewhere, joins changed."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from tests.graph.random_graphs import CONDITIONS, Document


class Edit:
    """A changed copy of a document, and the nodes that have other names in it."""

    def __init__(self, document: Document, draw: random.Random) -> None:
        self.document = copy.deepcopy(document)
        self.rename: dict[str, str] = {}
        self._draw = draw
        self._nodes: dict[str, dict[str, Any]] = self.document["nodes"]

    def change(self, times: int) -> Edit:
        """Make a few changes. Not every one finds something to change."""
        kinds: list[Callable[[str], None]] = [
            self.put_in, self.put_in, self.cut, self.cut, self.add_arm, self.add_arm, self.lead_elsewhere,
            self.rename_node, self.take_out, self.change_join, self.change_width, self.change_loop,
        ]  # fmt: skip
        for _ in range(times):
            self._draw.choice(kinds)(self._draw.choice(list(self._nodes)))
        return self

    def put_in(self, name: str) -> None:
        """Put a node between two others."""
        entries = self._entries(name)
        if entries:
            entry = self._draw.choice(entries)
            to = entry["to"] if isinstance(entry["to"], str) else self._draw.choice(entry["to"])
            between = f"x{len(self._nodes)}"
            self._nodes[between] = {"step": "s", "next": [{"to": to}]}
            entry["to"] = between if isinstance(entry["to"], str) else [between if o == to else o for o in entry["to"]]

    def cut(self, name: str) -> None:
        """Remove an edge, or all edges of an entry."""
        entries = self._entries(name)
        if entries:
            entry = self._draw.choice(entries)
            if isinstance(entry["to"], list) and len(entry["to"]) > 1:
                entry["to"].pop(self._draw.randrange(len(entry["to"])))
            else:
                entries.remove(entry)

    def add_arm(self, name: str) -> None:
        """Add an edge to a node that lies behind, perhaps with a condition, or beside an edge that is there."""
        later = self._later(name)
        if not later:
            return
        to, entries = self._draw.choice(later), self._entries(name)
        beside = [entry for entry in entries if isinstance(entry["to"], list) and to not in entry["to"]]
        if beside and self._draw.random() < 0.5:
            self._draw.choice(beside)["to"].append(to)
        else:
            when = {"when": self._draw.choice(CONDITIONS)} if self._draw.random() < 0.3 else {}
            at = self._draw.randint(0, len(entries))
            self._nodes[name].setdefault("next", []).insert(at, {"to": to, **when})

    def lead_elsewhere(self, name: str) -> None:
        """Lead an edge to another node."""
        later, entries = self._later(name), [one for one in self._entries(name) if isinstance(one["to"], str)]
        if later and entries:
            self._draw.choice(entries)["to"] = self._draw.choice(later)

    def rename_node(self, name: str) -> None:
        """Give a node another name. Its place in the order of the document stays."""
        now = f"r{len(self.rename)}{name}"
        old = next((old for old, new in self.rename.items() if new == name), name)
        self.rename[old] = now
        self._nodes = {now if one == name else one: node for one, node in self._nodes.items()}
        self.document["nodes"] = self._nodes
        self._lead_all(name, now)

    def take_out(self, name: str) -> None:
        """Remove a node that leads to one other. What led to it leads there."""
        entries = self._entries(name)
        if len(entries) == 1 and isinstance(entries[0]["to"], str) and len(entries[0]) == 1 and len(self._nodes) > 2:
            to = entries[0]["to"]
            del self._nodes[name]
            self.rename = {old: new for old, new in self.rename.items() if new != name}
            self._lead_all(name, to)

    def change_join(self, name: str) -> None:
        """Change what a join needs, and what becomes of late branches."""
        node = self._nodes[name]
        if node.get("join") not in (None, "edges"):
            node["join"] = self._draw.choice(["all", "any", {"at_least": 1}, {"at_least": 2}])
            node["late"] = self._draw.choice(["cancel", "abandon", "merge"])
        elif node.get("join") == "edges" and self._draw.random() < 0.2:
            del node["join"]

    def change_width(self, name: str) -> None:
        """Change how many branches of a fan-out work at once."""
        for entry in self._entries(name):
            if "for_each" in entry or "copies" in entry:
                entry.pop("width", None)
                entry.update(self._draw.choice([{}, {"width": 1}, {"width": 3}]))

    def change_loop(self, name: str) -> None:
        """Allow a loop more rounds, or make it none."""
        if "repeat" in self._nodes[name] and self._draw.random() < 0.3:
            del self._nodes[name]["repeat"]
        elif "repeat" in self._nodes[name]:
            self._nodes[name]["repeat"]["at_most"] += 1

    def _entries(self, name: str) -> list[dict[str, Any]]:
        return self._nodes[name].get("next") or []

    def _later(self, name: str) -> list[str]:
        names = list(self._nodes)
        return names[names.index(name) + 1 :]

    def _lead_all(self, name: str, to: str) -> None:
        """Let everything that names a node name another one."""

        def led(names: Any) -> Any:
            return [led(one) for one in names] if isinstance(names, list) else to if names == name else names

        for node in self._nodes.values():
            for entry in (*node.get("next", ()), *node.get("catch", ())):
                entry["to"] = led(entry["to"])
            if "of" in node:
                node["of"] = led(node["of"])
            for field in ("back_to", "exhausted"):
                if field in node.get("repeat", {}):
                    node["repeat"][field] = led(node["repeat"][field])
