"""The glyphs and colours of boxes and arrows in a terminal."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, set_cell_size

from weft.observe.pictures.model import Arrow, ArrowKind, Box, Mark

GLYPHS: Final[dict[Mark, str]] = {
    "idle": "○",
    "done": "✓",
    "working": "●",
    "waiting": "◐",
    "queued": "⋯",
    "failed": "✗",
    "skipped": "–",
}
STYLES: Final[dict[Mark, str]] = {
    "idle": "",
    "done": "32",
    "working": "1;36",
    "waiting": "33",
    "queued": "35",
    "failed": "1;31",
    "skipped": "2",
}
ARROW_STYLES: Final[dict[ArrowKind, str]] = {"main": "", "back": "34", "error": "31", "timeout": "33"}
DASHED: Final[frozenset[ArrowKind]] = frozenset({"error", "timeout"})
DIM: Final = "2"
BOLD: Final = "1"


def clipped(text: str, cells_max: int) -> str:
    """Cut a text to at most ``cells_max`` cells."""
    if cell_len(text) <= cells_max:
        return text
    return set_cell_size(text, cells_max - 1).rstrip() + "…" if cells_max > 0 else ""


def headline(box: Box, *, live: bool) -> str:
    """Return the first line of a box: its glyph, its title, and how often it was performed."""
    times = f" ×{box.times}" if box.times > 1 else ""
    glyph = f"{GLYPHS[box.mark]} " if live else ""
    return f"{glyph}{box.title or ('start' if box.shape == 'start' else box.id)}{times}"


def arrow_style(arrow: Arrow, *, live: bool) -> str:
    """Return the style of an arrow. In the picture of a run, arrows that it did not take are faint."""
    style = ARROW_STYLES[arrow.kind]
    if live and not arrow.taken:
        return f"{DIM};{style}" if style else DIM
    return style
