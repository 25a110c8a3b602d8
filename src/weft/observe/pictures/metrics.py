"""Sizes and distances of a layout, in the units of a renderer: terminal cells or pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.observe.pictures.model import Arrow, Box
from weft.observe.pictures.ranks import Size, Vertex


@dataclass(frozen=True, slots=True)
class LayoutMetrics:
    """Sizes and distances.

    ``label_line`` returns the offset at which the arrow passes through a label of the given width.

    Horizontal distances: ``gap`` between two boxes, ``lane`` beside a line, ``port`` between two lines at the same box,
    and ``corner`` between the outermost line and the side of the box.

    Vertical distances between two ranks: ``straight`` if no line turns there. Otherwise ``lead`` to the first turn,
    ``track`` from turn to turn, and ``head`` after the last turn. In front of a box, ``arrow`` is added to ``head`` and
    to ``straight``.
    """

    box: Callable[[Box], Size]
    label: Callable[[Arrow], Size]
    label_line: Callable[[int], int]
    gap: int
    lane: int
    port: int
    corner: int
    straight: int
    lead: int
    track: int
    head: int
    arrow: int

    def distance(self, left: Vertex, right: Vertex) -> int:
        """Return the distance from the left side of one vertex to that of the next."""
        both = left.kind == "box" and right.kind == "box"
        return left.width + (self.gap if both else self.lane)
