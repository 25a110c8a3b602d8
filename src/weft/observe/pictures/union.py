"""Two pictures over each other, as one. Pure."""

from __future__ import annotations

from weft.observe.pictures.model import Picture


def union_of(a: Picture, b: Picture) -> Picture:
    """Return one picture with the boxes, arrows and groups of both, those of the first in their order."""
    boxes = {box.id: box for box in (*b.boxes, *a.boxes)}
    arrows = {(arrow.id, arrow.source, arrow.to): arrow for arrow in (*b.arrows, *a.arrows)}
    groups = {group.id: group for group in (*b.groups, *a.groups)}
    order = dict.fromkeys(box.id for box in (*a.boxes, *b.boxes))
    return Picture(
        a.title if a.title == b.title else f"{a.title} and {b.title}",
        tuple(boxes[name] for name in order),
        tuple(arrows.values()),
        groups=tuple(groups.values()),
    )
