"""Check the writes of a graph: undeclared fields, and fields that two branches could write at once. Pure."""

from __future__ import annotations

from typing import Any

from weft.core.findings import At, Problems, did_you_mean
from weft.core.graph.frames import Frames
from weft.core.graph.model import Target
from weft.core.graph.scopes import Scopes
from weft.core.graph.shape import Arc, Shape


def check_writes(shape: Shape, scopes: Scopes, frames: Frames, problems: Problems) -> None:
    """Report writes to undeclared fields of the state, and ``state.x`` if two branches could write it."""
    writers = _Writers(shape, scopes, problems)
    for index in range(1, len(shape.names)):
        node = shape.node(index)
        for save in node.save:
            if save.to.scope == "state" or not scopes.in_branch(index):
                _check_declared(save.to, save.value.at, shape.folded.state, problems)
            if save.to.scope == "state":
                writers.add(index, save.to, save.value.at)
        join = node.fan_in
        if join is None or join.merge is None or index not in frames.opener:
            continue
        if not scopes.in_branch(index):
            _check_declared(join.merge.into, join.merge_at, shape.folded.state, problems)
        elif join.merge.into.scope == "state":
            field = ".".join(join.merge.into.path)
            problems.add(
                "merge_target",
                join.merge_at,
                f"{node.id} runs inside a branch, so its merge cannot write state.{field}.",
                f"Write into: branch.{field} and merge that where the outer fan-out closes.",
            )


class _Writers:
    """Records which nodes write which field of the state, by branch."""

    def __init__(self, shape: Shape, scopes: Scopes, problems: Problems) -> None:
        self._shape = shape
        self._scopes = scopes
        self._problems = problems
        self._branches: dict[tuple[int, str], list[tuple[Arc, int, Target]]] = {}

    def add(self, node: int, target: Target, at: At) -> None:
        edges = {
            level.edge for scope in self._scopes.works[node] for level in self._scopes.levels(scope) if level.edge >= 0
        }
        for edge in sorted(edges):
            arc = self._shape.arcs[edge]
            opener = self._shape.names[arc.source] or "start"
            field = ".".join(target.path)
            if arc.multiplies:
                why = f"every branch of {opener} -> {self._shape.names[arc.to]} would write state.{field}."
            else:
                rival = self._find_rival_writer(arc, node, target)
                if rival is None:
                    continue
                why = f"{rival} and {self._shape.names[node]}, in different branches of {opener}, write state.{field}."
            self._problems.add("write_conflict", at, why, f"Write branch.{field} and merge it where the branches meet.")
            return

    def _find_rival_writer(self, arc: Arc, node: int, target: Target) -> str | None:
        """Return a node in another branch of the same frame that writes the field too."""
        written = self._branches.setdefault((arc.source, target.path[0]), [])
        for other, writer, path in written[:100]:
            if other is not arc and _taken_together(other, arc, self._shape) and _overlap(path.path, target.path):
                return self._shape.names[writer]
        written.append((arc, node, target))
        return None


def _taken_together(a: Arc, b: Arc, shape: Shape) -> bool:
    """Return whether two edges of one node may be taken at once."""
    fan_out = shape.node(a.source).fan_out if a.source else "tiers"
    if fan_out == "first_match" or a.kind != b.kind:
        return False
    return fan_out == "all" or a.tier == b.tier


def _overlap(a: list[str], b: list[str]) -> bool:
    shorter = min(len(a), len(b))
    return a[:shorter] == b[:shorter]


def _check_declared(target: Target, at: At, schema: dict[str, Any] | None, problems: Problems) -> None:
    """Check that a target is declared. A declared state is closed at its top level; below, its schema decides."""
    known: Any = schema
    for depth, word in enumerate(target.path):
        if not isinstance(known, dict) or not isinstance(known.get("properties"), dict):
            return
        properties = known["properties"]
        if word in properties:
            known = properties[word]
            continue
        open_ = known.get("additionalProperties", depth > 0)
        if open_ is False and "patternProperties" not in known:
            field = ".".join(["state", *target.path[: depth + 1]])
            problems.add("unknown_field", at, f'"{field}" is not in the state.', did_you_mean(word, properties))
        return
