"""Render a picture as one self-contained SVG file that follows the reader's light or dark mode. Pure.

All user text is escaped. Tooltips show the whole text where it is cut, and details for which there is no room.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from weft.observe.pictures.layout import Area, ArrowRoute, Point, lay_out
from weft.observe.pictures.metrics import LayoutMetrics
from weft.observe.pictures.model import Arrow, Box, Mark, Picture, with_printable_texts
from weft.observe.pictures.ranks import Size
from weft.observe.pictures.svg_style import fitted, style, text_width
from weft.observe.pictures.text_wrap import wrapped

NAME, DOES, BADGE, LABEL = 13.5, 11.0, 11.0, 11.0
"""Font sizes."""

TEXT_MAX = 250
LABEL_MAX, LABEL_LINES = 190, 3
PAD, ICON, DOT = 14, 22, 16
ROW_NAME, ROW_DOES, ROW_BADGE, ROW_LABEL = 20, 17, 23, 14
MARGIN = 28
HEADING, LEGEND = 46, 34
CORNER = 7
HEAD = 7

MARKS: tuple[Mark, ...] = ("done", "working", "waiting", "queued", "failed", "skipped", "idle")
SIGNS: dict[Mark, str] = {
    "idle": "",
    "done": "M-3.2 .2 L-1 2.6 L3.4 -2.6",
    "working": "M-1.6 -3 L2.6 0 L-1.6 3 Z",
    "waiting": "M0 -3.4 L0 .3 L2.6 1.8",
    "queued": "M-3 -2.2 H3 M-3 .2 H3 M-3 2.6 H1",
    "failed": "M-2.6 -2.6 L2.6 2.6 M2.6 -2.6 L-2.6 2.6",
    "skipped": "M-3 0 H3",
}
"""The path of the sign in each disc, relative to its centre."""


def render_svg(picture: Picture) -> str:
    """Return the picture as SVG."""
    picture = with_printable_texts(picture)
    live = picture.live
    layout = lay_out(picture, metrics_of(picture))
    title = fitted(picture.title, 17, 900)
    top = MARGIN + (HEADING if picture.title or picture.subtitle else 0)
    legend = _legend(picture) if live else []
    least = max(text_width(title, 17), text_width(picture.subtitle, 13), sum(width for width, _ in legend))
    width = max(layout.width, least) + 2 * MARGIN
    height = top + layout.height + MARGIN + (LEGEND if legend else 0)
    left = (width - layout.width) // 2
    sizes = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="weft{" live" if live else ""}" {sizes} role="img">',
        f"<title>{escape(picture.title or 'graph')}</title>",
        f"<style>{style()}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        *_heading(picture, title),
        f'<g transform="translate({left} {top})">',
        *_arrows(picture, layout.routes),
        *(_box(box, area, live=live) for box, area in zip(picture.boxes, layout.boxes, strict=True)),
        "</g>",
        *_legend_lines(legend, MARGIN, height - MARGIN),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def metrics_of(picture: Picture) -> LayoutMetrics:
    """Return the sizes and distances of a picture in pixels."""
    live = picture.live
    return LayoutMetrics(
        box=lambda box: _box_size(box, live=live),
        label=_label_size,
        label_line=lambda width: width // 2,
        gap=34,
        lane=20,
        port=30,
        corner=16,
        straight=18,
        lead=14,
        track=11,
        head=14,
        arrow=12,
    )


def _heading(picture: Picture, title: str) -> Iterator[str]:
    if title:
        yield f'<text class="title" x="{MARGIN}" y="{MARGIN + 12}">{escape(title)}</text>'
    if picture.subtitle:
        yield f'<text class="about" x="{MARGIN}" y="{MARGIN + 32}">{escape(fitted(picture.subtitle, 13, 900))}</text>'


# --- boxes -------------------------------------------------------------------------------------------------------


def _times(box: Box) -> str:
    return f"×{box.times}" if box.times > 1 else ""


def _badge_rows(box: Box) -> list[list[str]]:
    """Return the badges in rows, as many side by side as fit."""
    rows: list[list[str]] = []
    used = TEXT_MAX + 1
    for badge in box.badges:
        width = _badge_width(badge)
        if used + width > TEXT_MAX:
            rows.append([])
            used = 0
        rows[-1].append(badge)
        used += width
    return rows


def _badge_width(badge: str) -> int:
    # The text is bold, which is wider.
    return text_width(fitted(badge, BADGE, TEXT_MAX - 30), BADGE * 1.1) + 20


def _box_size(box: Box, *, live: bool) -> Size:
    if box.shape == "start" and not box.title:
        return DOT + 1, DOT
    icon = ICON if live else 0
    times = text_width(_times(box), BADGE) + 12 if _times(box) else 0
    rows = _badge_rows(box)
    inner = max(
        min(text_width(box.title, NAME), TEXT_MAX) + icon + times,
        min(text_width(box.subtitle, DOES, mono=True), TEXT_MAX) + icon,
        *(sum(map(_badge_width, row)) - 6 + icon for row in rows),
        64,
    )
    side = PAD + (8 if box.shape in ("end", "choice", "start") else 0)
    height = 2 * 9 + ROW_NAME + (ROW_DOES if box.subtitle else 0) + ROW_BADGE * len(rows)
    return (inner + 2 * side) | 1, height


def _box(box: Box, area: Area, *, live: bool) -> str:
    tip = "\n".join(filter(None, (box.title, box.tip or box.subtitle, *box.badges, box.mark if live else "")))
    parts = [f'<g class="box {box.mark}"><title>{escape(tip)}</title>', _outline(box, area)]
    if box.shape != "start" or box.title:
        parts += _draw_contents(box, area, live=live)
    return "".join([*parts, "</g>"])


def _outline(box: Box, area: Area) -> str:
    x, y, width, height = area.x, area.y, area.width, area.height
    rectangle = f'<rect class="shape" x="{x}" y="{y}" width="{width}" height="{height}"'
    if box.shape == "start" and not box.title:
        if area.width > DOT + 1:  # the start is wide enough for all arrows that leave it
            return f'<rect class="dot" x="{x}" y="{y}" width="{area.width}" height="{DOT}" rx="{DOT // 2}"/>'
        return f'<circle class="dot" cx="{x + DOT // 2}" cy="{y + DOT // 2}" r="{DOT // 2}"/>'
    if box.shape in ("start", "end"):
        return f'{rectangle} rx="{min(height // 2, 22)}"/>'
    if box.shape == "choice":
        tip = 12
        points = [(x + tip, y), (x + width - tip, y), (x + width, y + height // 2), (x + width - tip, y + height)]
        points += [(x + tip, y + height), (x, y + height // 2)]
        return f'<polygon class="shape" points="{_svg_points(points)}"/>'
    if box.shape == "join":
        bar = f'<rect class="bar" x="{x - 5}" y="{y - 2}" width="{width + 10}" height="5" rx="2.5"/>'
        return f'{rectangle} rx="4"/>{bar}'
    return f'{rectangle} rx="8"/>'


def _draw_contents(box: Box, area: Area, *, live: bool) -> Iterator[str]:
    side = PAD + (8 if box.shape in ("end", "choice", "start") else 0)
    x, y = area.x + side, area.y + 9
    if live:
        yield f'<circle class="dot" cx="{x + 7}" cy="{y + 10}" r="7.5"/>'
        if SIGNS[box.mark]:
            yield f'<path class="sign" transform="translate({x + 7} {y + 10})" d="{SIGNS[box.mark]}"/>'
        x += ICON
    yield f'<text class="name" x="{x}" y="{y + 15}">{escape(fitted(box.title, NAME, TEXT_MAX))}</text>'
    if _times(box):
        right = area.x + area.width - side
        yield f'<text class="times" x="{right}" y="{y + 15}" text-anchor="end">{_times(box)}</text>'
    y += ROW_NAME
    if box.subtitle:
        does = escape(fitted(box.subtitle, DOES, TEXT_MAX, mono=True))
        yield f'<text class="does" x="{x}" y="{y + 12}">{does}</text>'
        y += ROW_DOES
    for row in _badge_rows(box):
        left = x
        for badge in row:
            width = _badge_width(badge) - 6
            text = escape(fitted(badge, BADGE, TEXT_MAX - 30))
            yield f'<g class="badge"><rect x="{left}" y="{y + 4}" width="{width}" height="18" rx="9"/>'
            yield f'<text x="{left + width / 2:g}" y="{y + 17}" text-anchor="middle">{text}</text></g>'
            left += width + 6
        y += ROW_BADGE


# --- arrows ------------------------------------------------------------------------------------------------------


def _label_lines(arrow: Arrow) -> list[str]:
    return wrapped(
        arrow.label,
        LABEL_LINES,
        lambda text: text_width(text, LABEL, mono=True) <= LABEL_MAX,
        lambda text: fitted(text, LABEL, LABEL_MAX, mono=True),
    )


def _label_size(arrow: Arrow) -> Size:
    lines = _label_lines(arrow)
    if not lines:
        return 0, 0
    return (max(text_width(line, LABEL, mono=True) for line in lines) + 16) | 1, ROW_LABEL * len(lines) + 7


def _arrows(picture: Picture, routes: list[ArrowRoute]) -> Iterator[str]:
    """Draw the lines first and the labels on top. Taken arrows are drawn above the others."""
    pairs = sorted(zip(picture.arrows, routes, strict=True), key=lambda pair: pair[0].taken)
    names = {box.id: box.title or "start" for box in picture.boxes}
    for arrow, route in pairs:
        yield _svg_line(f"{names[arrow.source]} → {names[arrow.to]}", arrow, route)
    for arrow, route in pairs:
        if route.label is not None:
            yield _label(arrow, route.label)


def _svg_line(ends: str, arrow: Arrow, route: ArrowRoute) -> str:
    x, y = route.points[-1]
    tip = "\n".join(filter(None, (ends, arrow.tip or arrow.label)))
    classes = f"arrow {arrow.kind}{' taken' if arrow.taken else ''}"
    head = [(x, y - 1), (x - 5, y - 1 - HEAD - 2), (x + 5, y - 1 - HEAD - 2)]
    points = [*route.points[:-1], (x, y - HEAD)]
    return (
        f'<g class="{classes}"><title>{escape(tip)}</title>'
        f'<path d="{_path(points)}"/><polygon points="{_svg_points(head)}"/></g>'
    )


def _path(points: list[Point]) -> str:
    """Return the path through the points, with corners as round as possible."""
    parts = [f"M{points[0][0]} {points[0][1]}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        reach = min(CORNER, _length(before, corner) / 2, _length(corner, after) / 2)
        begin, end = _point_towards(corner, before, reach), _point_towards(corner, after, reach)
        parts.append(f"L{begin[0]:g} {begin[1]:g}Q{corner[0]} {corner[1]} {end[0]:g} {end[1]:g}")
    parts.append(f"L{points[-1][0]} {points[-1][1]}")
    return "".join(parts)


def _length(one: Point, other: Point) -> int:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _point_towards(point: Point, other: Point, reach: float) -> tuple[float, float]:
    length = _length(point, other)
    if not length:
        return point
    return point[0] + (other[0] - point[0]) * reach / length, point[1] + (other[1] - point[1]) * reach / length


def _svg_points(points: list[Point]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)


def _label(arrow: Arrow, area: Area) -> str:
    middle = area.x + area.width // 2
    lines = [
        f'<tspan x="{middle}" y="{area.y + ROW_LABEL * number + 14}">{escape(line)}</tspan>'
        for number, line in enumerate(_label_lines(arrow))
    ]
    return (
        f'<g class="label {arrow.kind}"><title>{escape(arrow.tip or arrow.label)}</title>'
        f'<rect x="{area.x}" y="{area.y}" width="{area.width}" height="{area.height}" rx="6"/>'
        f'<text text-anchor="middle">{"".join(lines)}</text></g>'
    )


# --- legend ------------------------------------------------------------------------------------------------------


def _legend(picture: Picture) -> list[tuple[int, Mark]]:
    """Return the states that occur, each with the width of its entry."""
    present = {box.mark for box in picture.boxes if box.shape != "start"}
    return [(text_width(mark, 13) + 36, mark) for mark in MARKS if mark in present]


def _legend_lines(legend: list[tuple[int, Mark]], x: int, y: int) -> Iterator[str]:
    for width, mark in legend:
        sign = f'<path class="sign" transform="translate({x + 7} {y - 5})" d="{SIGNS[mark]}"/>' if SIGNS[mark] else ""
        yield (
            f'<g class="{mark}"><circle class="dot" cx="{x + 7}" cy="{y - 5}" r="7.5"/>{sign}</g>'
            f'<text class="about" x="{x + 20}" y="{y}">{mark}</text>'
        )
        x += width
