"""Compare two versions of a graph for people: their texts line by line, and both in one picture. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from weft.core.graph.differences import ChangedParts, compare_edges, compare_nodes, describe_changes
from weft.core.graph.model import GraphModel
from weft.observe.pictures import Arrow, Box, Picture
from weft.observe.pictures.graphs import picture_of_graph

LINES_MAX = 20_000
Change = Literal["added", "removed", "changed"]


class DiffLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of two texts: in both, only in the first, or only in the second. ``a`` and ``b`` number it from 1."""

    text: str
    change: Literal["same", "removed", "added"] = "same"
    a: int = 0
    b: int = 0


class ComparedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison."""

    graph: GraphModel
    source: dict[str, Any]
    text: str


class GraphComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of two versions, and a picture with the boxes and arrows of both."""

    lines: list[DiffLine]
    sentences: list[str]
    picture: Picture
    boxes: dict[str, Change]
    arrows: dict[str, Change]


def compare_graphs(a: ComparedGraph, b: ComparedGraph) -> GraphComparison:
    """Compare two versions of a graph."""
    nodes, edges = compare_nodes(a.graph, b.graph), compare_edges(a.graph, b.graph)
    return GraphComparison(
        lines=list(diff_lines(a.text.splitlines(), b.text.splitlines())),
        sentences=describe_changes(a.graph, b.graph, (a.source, b.source)),
        picture=_merge_pictures(picture_of_graph(a.graph), picture_of_graph(b.graph)),
        boxes=_changes(nodes),
        arrows=_changes(edges),
    )


def diff_lines(a: Sequence[str], b: Sequence[str]) -> Iterator[DiffLine]:
    """Yield the lines of two texts in order. Texts that are too long to compare are all removed and all added."""
    if len(a) + len(b) > LINES_MAX:
        yield from (DiffLine(text, "removed", a=number) for number, text in enumerate(a, 1))
        yield from (DiffLine(text, "added", b=number) for number, text in enumerate(b, 1))
        return
    for tag, a1, a2, b1, b2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (DiffLine(a[a1 + n], a=a1 + n + 1, b=b1 + n + 1) for n in range(a2 - a1))
            continue
        yield from (DiffLine(a[n], "removed", a=n + 1) for n in range(a1, a2))
        yield from (DiffLine(b[n], "added", b=n + 1) for n in range(b1, b2))


def _changes(parts: ChangedParts) -> dict[str, Change]:
    found: dict[str, Change] = dict.fromkeys(parts.added, "added")
    found.update(dict.fromkeys(parts.removed, "removed"))
    found.update(dict.fromkeys(parts.changed, "changed"))
    return found


def _merge_pictures(a: Picture, b: Picture) -> Picture:
    boxes: dict[str, Box] = {box.id: box for box in (*a.boxes, *b.boxes)}
    arrows: dict[str, Arrow] = {arrow.id: arrow for arrow in (*a.arrows, *b.arrows)}
    groups = {group.id: group for group in (*a.groups, *b.groups)}
    used = {box.group for box in boxes.values()}
    parents = {group.parent for group in groups.values()}
    kept = tuple(group for group in groups.values() if group.id in used | parents)
    return Picture(b.title, tuple(boxes.values()), tuple(arrows.values()), groups=kept)
