"""A picture with its layout as data, for programs that draw it themselves. Pure.

The layout does not depend on the state of a run, so that boxes stay where they are while it works. What changes is in
``weft.observe.standing``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import msgspec

from weft.core import values
from weft.observe.pictures.layout import Area, lay_out
from weft.observe.pictures.metrics import LayoutMetrics
from weft.observe.pictures.model import ArrowKind, Box, BoxGroup, GroupKind, Picture, Shape, with_printable_texts
from weft.observe.pictures.ranks import Size
from weft.observe.pictures.svg import metrics_of

STATE_WIDTH, STATE_HEIGHT = 26, 18
"""The room for the sign of a box, and for the line that says how often it was performed."""
GROUP_MARGIN = 14


class DrawnBox(msgspec.Struct, frozen=True, omit_defaults=True):
    """A box and its area."""

    id: str
    x: int
    y: int
    w: int
    h: int
    title: str = ""
    subtitle: str = ""
    kind: str = ""
    shape: Shape = "plain"
    group: str = ""
    tip: str = ""


class DrawnArrow(msgspec.Struct, frozen=True, omit_defaults=True):
    """An arrow and the corners of its line. ``label_at`` is the area of its label: x, y, width and height."""

    id: str
    source: str
    to: str
    points: list[tuple[int, int]]
    kind: ArrowKind = "main"
    label: str = ""
    label_at: tuple[int, int, int, int] | None = None
    tip: str = ""


class DrawnGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group. Its area is empty if boxes of other groups lie in it."""

    id: str
    title: str
    kind: GroupKind
    parent: str = ""
    x: int = 0
    y: int = 0
    w: int = 0
    h: int = 0


class DrawnPicture(msgspec.Struct, frozen=True):
    """A picture with its layout. Pictures with the same digest are equal."""

    digest: str
    title: str
    width: int
    height: int
    boxes: list[DrawnBox]
    arrows: list[DrawnArrow]
    groups: list[DrawnGroup]


def without_state(picture: Picture) -> Picture:
    """Return the picture without the state of a run."""
    return Picture(
        picture.title,
        tuple(msgspec.structs.replace(box, mark="idle", times=0, badges=()) for box in picture.boxes),
        tuple(msgspec.structs.replace(arrow, taken=False, times=0) for arrow in picture.arrows),
        groups=picture.groups,
    )


def picture_digest(picture: Picture) -> str:
    """Return the digest of a picture, whatever the state of its run."""
    return values.digest(msgspec.json.encode(without_state(picture)))


def draw(picture: Picture) -> DrawnPicture:
    """Lay a picture out. Slow for large pictures."""
    digest = picture_digest(picture)
    picture = with_printable_texts(without_state(picture))
    layout = lay_out(picture, _metrics(picture))
    boxes = [
        DrawnBox(box.id, *_sides(area), box.title, box.subtitle, box.kind, box.shape, box.group, box.tip)
        for box, area in zip(picture.boxes, layout.boxes, strict=True)
    ]
    arrows = [
        DrawnArrow(
            arrow.id,
            arrow.source,
            arrow.to,
            route.points,
            arrow.kind,
            arrow.label,
            _sides(route.label) if route.label is not None else None,
            arrow.tip,
        )
        for arrow, route in zip(picture.arrows, layout.routes, strict=True)
    ]
    groups = [_group(group, picture.groups, boxes) for group in picture.groups]
    return DrawnPicture(digest, picture.title, layout.width, layout.height, boxes, arrows, groups)


def _sides(area: Area) -> tuple[int, int, int, int]:
    return area.x, area.y, area.width, area.height


def _metrics(picture: Picture) -> LayoutMetrics:
    """Return the metrics of the SVG, with room for the state of each box."""
    plain = metrics_of(picture)

    def size(box: Box) -> Size:
        width, height = plain.box(box)
        return (
            (width, height) if box.shape == "start" and not box.title else (width + STATE_WIDTH, height + STATE_HEIGHT)
        )

    return dataclasses.replace(plain, box=size)


def _group(group: BoxGroup, groups: tuple[BoxGroup, ...], boxes: list[DrawnBox]) -> DrawnGroup:
    inside = set(_within(group.id, groups))
    own = [box for box in boxes if box.group in inside]
    left, top = min(box.x for box in own) - GROUP_MARGIN, min(box.y for box in own) - GROUP_MARGIN
    right = max(box.x + box.w for box in own) + GROUP_MARGIN
    bottom = max(box.y + box.h for box in own) + GROUP_MARGIN
    others = (box for box in boxes if box.group not in inside)
    if any(box.x < right and left < box.x + box.w and box.y < bottom and top < box.y + box.h for box in others):
        return DrawnGroup(group.id, group.title, group.kind, group.parent)
    return DrawnGroup(group.id, group.title, group.kind, group.parent, left, top, right - left, bottom - top)


def _within(group: str, groups: tuple[BoxGroup, ...]) -> Iterator[str]:
    yield group
    for other in groups:
        if other.parent == group:
            yield from _within(other.id, groups)
