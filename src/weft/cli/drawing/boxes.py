"""Draw a picture for the terminal: boxes and arrows if they fit, and an outline otherwise. Pure.

Arrows that the run took are heavy. Arrows for failures and timeouts are dashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from rich.cells import cell_len

from weft.cli.drawing.canvas import RESET, Canvas, Stroke
from weft.cli.drawing.glyphs import BOLD, DASHED, DIM, STYLES, arrow_style, clipped, headline
from weft.cli.drawing.outline import outline
from weft.observe.pictures.layout import Area, ArrowRoute, Layout, lay_out_within
from weft.observe.pictures.metrics import LayoutMetrics
from weft.observe.pictures.model import Arrow, Box, Picture, with_printable_texts
from weft.observe.pictures.ranks import Size
from weft.observe.pictures.text_wrap import wrapped

BOXES_MAX = 150
"""Larger pictures are drawn as an outline, because a drawing would be too long to follow."""

ROUND, DOUBLE = "╭─╮│╰╯┬┰", "╔═╗║╚╝╤╤"


@dataclass(frozen=True, slots=True)
class _Caps:
    """The maximum number of cells inside a box and in a line of a label, and the maximum number of label lines."""

    box: int
    label: int
    lines: int = 1


CAPS = (
    _Caps(34, 48),
    _Caps(30, 36, 2),
    _Caps(26, 28, 2),
    _Caps(22, 22, 3),
    _Caps(18, 18, 3),
    _Caps(14, 14, 4),
    _Caps(10, 14, 4),
)
"""The caps that are tried, from wide to narrow. The first drawing that fits is used."""


def render_text(picture: Picture, *, width: int, color: bool = False) -> str:
    """Draw a picture in lines of at most ``width`` cells. ``color`` adds ANSI sequences and changes nothing else."""
    picture = with_printable_texts(picture)
    lines = _drawn(picture, width, color=color) or outline(picture, width=width, color=color)
    return "\n".join([*_heading(picture, width, color=color), *lines]) + "\n"


def _heading(picture: Picture, width: int, *, color: bool) -> list[str]:
    title = clipped(picture.title, width)
    rest = clipped(f"  {picture.subtitle}", width - cell_len(title)) if picture.subtitle else ""
    if color:
        title = f"\x1b[{BOLD}m{title}{RESET}"
        rest = f"\x1b[{DIM}m{rest}{RESET}" if rest.strip() else ""
    return [title + (rest if rest.strip() else ""), ""] if picture.title or picture.subtitle else []


def _drawn(picture: Picture, width: int, *, color: bool) -> list[str] | None:
    if not picture.boxes or len(picture.boxes) > BOXES_MAX:
        return None
    for caps in CAPS:
        layout = lay_out_within(picture, _metrics(picture, caps), width)
        if layout is not None:
            return _Sheet(picture, layout, caps).lines(color=color)
    return None


def _metrics(picture: Picture, caps: _Caps) -> LayoutMetrics:
    live = picture.live
    return LayoutMetrics(
        box=lambda box: _box_size(box, caps, live=live),
        label=lambda arrow: _label_size(arrow, caps),
        label_line=lambda _: 0,
        gap=2,
        lane=2,
        port=4,
        corner=2,
        straight=0,
        lead=0,
        track=1,
        head=1,
        arrow=1,
    )


def _title(box: Box, caps: _Caps, *, live: bool) -> str:
    """Return the title of a box. It may be a little wider than the other lines."""
    return clipped(headline(box, live=live), caps.box + 4)


def _rows(box: Box, caps: _Caps) -> list[str]:
    """Return the lines below the title. Each badge has its own line unless all fit on one."""
    badges = [" · ".join(box.badges)]
    if cell_len(badges[0]) > caps.box:
        badges = list(box.badges)
    return [clipped(row, caps.box) for row in [box.subtitle, *badges] if row]


def _box_size(box: Box, caps: _Caps, *, live: bool) -> Size:
    if box.shape == "start" and not box.title:
        return 1, 1
    rows = _rows(box, caps)
    inner = max([cell_len(_title(box, caps, live=live)), *map(cell_len, rows)])
    # The width is odd, so that the box has a middle column.
    return (inner + 4) | 1, max(1, len(rows)) + 2


def _label_lines(arrow: Arrow, caps: _Caps) -> list[str]:
    room = caps.label
    return wrapped(arrow.label, caps.lines, lambda text: cell_len(text) <= room, lambda text: clipped(text, room))


def _label_size(arrow: Arrow, caps: _Caps) -> Size:
    lines = _label_lines(arrow, caps)
    return (2 + max(map(cell_len, lines)), len(lines)) if lines else (0, 0)


class _Sheet:
    """Draws a layout in cells."""

    def __init__(self, picture: Picture, layout: Layout, caps: _Caps) -> None:
        self.picture = picture
        self.live = picture.live
        self.layout = layout
        self.caps = caps
        self.boxes = {box.id: box for box in picture.boxes}
        self.areas = {box.id: area for box, area in zip(picture.boxes, layout.boxes, strict=True)}
        self.canvas = Canvas(layout.width, layout.height)

    def lines(self, *, color: bool) -> list[str]:
        pairs = list(zip(self.picture.arrows, self.layout.routes, strict=True))
        # Taken arrows are drawn last, so that crossings have their colour.
        pairs.sort(key=lambda pair: pair[0].taken)
        for arrow, route in pairs:
            self._draw_line(arrow, route)
        for box, area in zip(self.picture.boxes, self.layout.boxes, strict=True):
            self._draw_box(box, area)
        for arrow, route in pairs:
            self._draw_ends(arrow, route)
        return [line.rstrip() for line in self.canvas.lines(color=color)]

    def _draw_line(self, arrow: Arrow, route: ArrowRoute) -> None:
        stroke = Stroke(arrow_style(arrow, live=self.live), heavy=arrow.taken, dashed=arrow.kind in DASHED)
        points = list(route.points)
        points[0] = (points[0][0], points[0][1] - 1)  # from the border of the box
        points[-1] = (points[-1][0], points[-1][1] - 1)  # to the cell in front of it, where the head is
        for begin, end in pairwise(points):
            self.canvas.line(begin, end, stroke)

    def _draw_ends(self, arrow: Arrow, route: ArrowRoute) -> None:
        style = arrow_style(arrow, live=self.live)
        x, y = route.points[-1]
        self.canvas.write(x, y - 1, "▼", style)
        x, y = route.points[0]
        box = self.boxes[arrow.source]
        if box.shape != "start" or box.title:
            border = DOUBLE if box.shape == "join" else ROUND
            self.canvas.write(x, y - 1, border[7 if arrow.taken else 6], STYLES[box.mark])
        elif self.areas[arrow.source].width > 1:
            self.canvas.write(x, y - 1, "┰" if arrow.taken else "┬", STYLES[box.mark])
        if route.label is not None:
            for number, line in enumerate(_label_lines(arrow, self.caps)):
                self.canvas.write(route.label.x + 2, route.label.y + number, line, style)

    def _draw_box(self, box: Box, area: Area) -> None:
        style = STYLES[box.mark]
        if box.shape == "start" and not box.title:
            # The start is wide enough for all arrows that leave it.
            wide = f"●{'─' * (area.width - 2)}●"
            self.canvas.write(area.x, area.y, wide if area.width > 1 else "●", style)
            return
        border = DOUBLE if box.shape == "join" else ROUND
        across = border[1] * (area.width - 2)
        bottom = area.y + area.height - 1
        self.canvas.write(area.x, area.y, f"{border[0]}{across}{border[2]}", style)
        title = _title(box, self.caps, live=self.live)
        end = self.canvas.write(area.x + 1, area.y, f" {title}", f"{BOLD};{style}" if style else BOLD)
        self.canvas.write(end, area.y, " ", style)
        rows = _rows(box, self.caps)
        for number in range(area.height - 2):
            self.canvas.write(area.x, area.y + 1 + number, border[3], style)
            text = rows[number] if number < len(rows) else ""
            self.canvas.write(area.x + 1, area.y + 1 + number, " " * (area.width - 2))
            faint = DIM if text == clipped(box.subtitle, self.caps.box) or box.mark == "skipped" else style
            self.canvas.write(area.x + 2, area.y + 1 + number, text, faint)
            self.canvas.write(area.x + area.width - 1, area.y + 1 + number, border[3], style)
        self.canvas.write(area.x, bottom, f"{border[4]}{across}{border[5]}", style)
