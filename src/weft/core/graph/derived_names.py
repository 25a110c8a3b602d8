"""Derive the names of edges, loops and scopes from what they connect, so that other changes do not affect them.

Pure.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from weft.core.graph.loops import Ring
from weft.core.graph.scopes import ROOT, Scopes
from weft.core.graph.shape import Shape
from weft.core.ids import derive

RUN_SCOPE = ""
"""The scope outside all branches and loops."""


@dataclass(slots=True)
class Names:
    """The names of edges, loops and scopes. Each list is indexed by the number that the analyses use."""

    edges: list[str]
    loops: list[str]
    scopes: list[str]

    def loop(self, number: int) -> str:
        """Return the name of a loop, or "" for none."""
        return self.loops[number] if number >= 0 else ""


def scope_name(parent: str, level: str) -> str:
    """Return the name of the scope inside ``parent`` that an opening edge or a loop creates. Its length is fixed."""
    return derive("scope", parent, level)


def derive_names(shape: Shape, rings: list[Ring], scopes: Scopes) -> Names:
    """Name each edge by its ends and kind, each loop by its header, and each scope by the path into it."""
    counts: Counter[str] = Counter()

    def numbered(name: str) -> str:
        counts[name] += 1
        return name if counts[name] == 1 else f"{name}#{counts[name]}"

    edges = []
    for arc in shape.arcs:
        pair = f"{shape.names[arc.source]}>{shape.names[arc.to]}"
        edges.append(numbered(pair if arc.kind == "main" else f"{pair}@{arc.kind}"))
    loops = [numbered(shape.names[ring.header]) for ring in rings]
    named = [RUN_SCOPE]
    for level in scopes.all[ROOT + 1 :]:
        inside = edges[level.edge] if level.edge >= 0 else loops[level.loop]
        named.append(scope_name(named[level.parent], inside))
    return Names(edges, loops, named)
