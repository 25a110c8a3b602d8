"""The parts of a picture: boxes with a state, and arrows between them.

Titles and labels may contain any text. ``with_printable_texts`` turns each into one printable line, so that no
renderer has to deal with line breaks, escape sequences or lone surrogates. Each renderer quotes texts for its own
format.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

import msgspec

Shape = Literal["plain", "choice", "join", "start", "end"]
Mark = Literal["idle", "done", "working", "waiting", "queued", "failed", "skipped"]
ArrowKind = Literal["main", "back", "error", "timeout"]
GroupKind = Literal["fan_out", "loop", "scope"]


class Box(msgspec.Struct, frozen=True):
    """A box.

    ``subtitle`` says what the box does, ``badges`` show its state, and ``tip`` has the details for which there is no
    room, one per line. ``times`` is how often it was performed. A ``start`` without a title is drawn as a dot.
    ``kind`` is the kind of work, and ``group`` the innermost group that the box is in.
    """

    id: str
    title: str = ""
    subtitle: str = ""
    shape: Shape = "plain"
    mark: Mark = "idle"
    times: int = 0
    badges: tuple[str, ...] = ()
    tip: str = ""
    kind: str = ""
    group: str = ""


class BoxGroup(msgspec.Struct, frozen=True):
    """Boxes that belong together: the branches of a fan-out, the body of a loop, a scope of code."""

    id: str
    title: str
    kind: GroupKind
    parent: str = ""
    """The group around this one, if there is one."""


class Arrow(msgspec.Struct, frozen=True):
    """An arrow. A ``back`` arrow closes a loop: it leads upwards and is ignored when boxes are ranked.

    ``times`` is how often it was taken, as far as that is known. ``id`` names it among the arrows of the picture.
    """

    source: str
    to: str
    label: str = ""
    kind: ArrowKind = "main"
    taken: bool = False
    tip: str = ""
    times: int = 0
    id: str = ""


class Picture(msgspec.Struct, frozen=True):
    """A picture: boxes in the order of the document, and arrows that name them by id."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...] = ()
    subtitle: str = ""
    groups: tuple[BoxGroup, ...] = ()

    def __post_init__(self) -> None:
        ids = {box.id for box in self.boxes}
        assert len(ids) == len(self.boxes), "every box has a unique id"
        assert all(arrow.source in ids and arrow.to in ids for arrow in self.arrows), "arrows lead from box to box"

    @property
    def live(self) -> bool:
        """Whether the picture shows a run, not only a graph or a plan."""
        return any(box.mark != "idle" or box.times for box in self.boxes)


def with_printable_texts(picture: Picture) -> Picture:
    """Return the same picture with printable one-line texts."""
    return Picture(
        title=printable(picture.title),
        subtitle=printable(picture.subtitle),
        boxes=tuple(
            msgspec.structs.replace(
                box,
                title=printable(box.title),
                subtitle=printable(box.subtitle),
                badges=tuple(filter(None, map(printable, box.badges))),
                tip=_lines(box.tip),
            )
            for box in picture.boxes
        ),
        arrows=tuple(
            msgspec.structs.replace(arrow, label=printable(arrow.label), tip=_lines(arrow.tip))
            for arrow in picture.arrows
        ),
        groups=tuple(msgspec.structs.replace(group, title=printable(group.title)) for group in picture.groups),
    )


def printable(text: str) -> str:
    """Return a text as one line of visible characters."""
    spaced = " ".join(text.split())
    return "".join(char for char in spaced if not unicodedata.category(char).startswith("C"))


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.splitlines())
