"""Draw a picture as an outline: a line per box in the order of the flow, and below it a line per labelled arrow."""

from __future__ import annotations

from rich.cells import cell_len

from weft.cli.drawing.canvas import RESET
from weft.cli.drawing.glyphs import BOLD, DIM, STYLES, arrow_style, clipped, headline
from weft.observe.pictures.model import Arrow, Box, Picture
from weft.observe.pictures.ranks import rank

Part = tuple[str, str]
"""A text and its style."""

SIGNS = {"main": "→", "back": "↺", "error": "⇢", "timeout": "⇢"}


def outline(picture: Picture, *, width: int, color: bool) -> list[str]:
    """Return lines of at most ``width`` cells. Arrows without a label are on the line of their box."""
    ranked = rank(picture, [(1, 1)] * len(picture.boxes), [(0, 0)] * len(picture.arrows))
    order = sorted(range(len(picture.boxes)), key=lambda number: ranked.vertices[number].rank)
    names = {box.id: box.title or box.id or "start" for box in picture.boxes}
    leaving: dict[str, list[Arrow]] = {}
    for arrow in picture.arrows:
        leaving.setdefault(arrow.source, []).append(arrow)
    lines: list[str] = []
    live = picture.live
    for number in order:
        box = picture.boxes[number]
        entry = _entry(box, leaving.get(box.id, []), names, live=live)
        lines += [_outline_line(parts, width, color=color) for parts in entry]
    return lines


def _entry(box: Box, arrows: list[Arrow], names: dict[str, str], *, live: bool) -> list[list[Part]]:
    style = STYLES[box.mark]
    first: list[Part] = [(headline(box, live=live), f"{BOLD};{style}" if style else BOLD)]
    if box.subtitle:
        first.append((f"  {box.subtitle}", DIM))
    if box.badges:
        first.append((f"  {' · '.join(box.badges)}", style))
    unlabelled = [arrow for arrow in arrows if not arrow.label and arrow.kind == "main"]
    labelled = [arrow for arrow in arrows if arrow not in unlabelled]
    for index, arrow in enumerate(unlabelled):
        first.append(("  → " if index == 0 else ", ", arrow_style(arrow, live=live)))
        first.append((names[arrow.to], arrow_style(arrow, live=live)))
    rest: list[list[Part]] = []
    for index, arrow in enumerate(labelled):
        corner = "└" if index == len(labelled) - 1 else "├"
        text = f"{arrow.label} {SIGNS[arrow.kind]} " if arrow.label else f"{SIGNS[arrow.kind]} "
        mark = "━" if arrow.taken else "╴"
        rest.append([(f"  {corner}{mark}", DIM), (f"{text}{names[arrow.to]}", arrow_style(arrow, live=live))])
    return [first, *rest]


def _outline_line(parts: list[Part], width: int, *, color: bool) -> str:
    text, left = "", width
    for index, (part, style) in enumerate(parts):
        is_last = index == len(parts) - 1
        shown = clipped(part, left)
        if not is_last and cell_len(shown) == left and cell_len(part) == left:
            shown = clipped(f"{part}…", left)
        text += f"\x1b[{style}m{shown}{RESET}" if color and style and shown else shown
        left -= cell_len(shown)
        if left <= 0:
            break
    return text
