"""Colours, fonts and text widths of SVG pictures.

Every rule begins with ``.weft``, so that an embedded picture styles only itself. The style sheet has plain rules and
one media query, but no variables or scripts, which not every SVG viewer supports.
"""

from __future__ import annotations

import unicodedata
from typing import Final, NamedTuple

from weft.observe.pictures.model import ArrowKind, Mark

SANS: Final = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
MONO: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


class Look(NamedTuple):
    """Fill, border and text of a box."""

    fill: str
    line: str
    text: str


LIGHT: Final[dict[Mark, Look]] = {
    "idle": Look("#ffffff", "#bcc5d1", "#1d2733"),
    "done": Look("#eef8f2", "#3d9d6c", "#14432b"),
    "working": Look("#e7f0fe", "#2b6fdb", "#123668"),
    "waiting": Look("#fff5dc", "#b57d0e", "#5b3f03"),
    "queued": Look("#f3f0fd", "#8673d3", "#382a75"),
    "failed": Look("#fdecec", "#d24545", "#6d1717"),
    "skipped": Look("#f7f8fa", "#cfd5dd", "#626d7b"),
}
DARK: Final[dict[Mark, Look]] = {
    "idle": Look("#1b222c", "#4a5666", "#e3e9f0"),
    "done": Look("#152a20", "#3d9d6c", "#c2ecd3"),
    "working": Look("#14263f", "#5b96f0", "#d3e4ff"),
    "waiting": Look("#322809", "#d9a436", "#fbe6b4"),
    "queued": Look("#241f3d", "#9787dd", "#ded7fb"),
    "failed": Look("#3a1818", "#e46a6a", "#ffd2d2"),
    "skipped": Look("#161b22", "#333d4a", "#8793a1"),
}
ARROWS_LIGHT: Final[dict[ArrowKind, str]] = {
    "main": "#5d6a7a",
    "back": "#5a6fd0",
    "error": "#d24545",
    "timeout": "#b97f10",
}
ARROWS_DARK: Final[dict[ArrowKind, str]] = {
    "main": "#9aa7b6",
    "back": "#8d9df0",
    "error": "#ee7b7b",
    "timeout": "#dfae4c",
}
PAGE: Final = Look("#fbfcfd", "#dde2e9", "#1d2733")
PAGE_DARK: Final = Look("#0f141a", "#2b3440", "#e3e9f0")
MUTED, MUTED_DARK = "#5f6b7a", "#93a0af"

_FIXED: Final = f"""
.weft text{{font-family:{SANS};font-size:13px}}
.weft .title{{font-size:17px;font-weight:650}}
.weft .about{{font-size:13px}}
.weft .name{{font-weight:600;font-size:13.5px}}
.weft .does,.weft .label text{{font-family:{MONO};font-size:11px}}
.weft .badge text,.weft .times{{font-size:11px;font-weight:600}}
.weft .shape{{stroke-width:1.4}}
.weft .working .shape,.weft .failed .shape{{stroke-width:2.2}}
.weft .skipped .shape{{stroke-dasharray:5 4}}
.weft .sign{{fill:none;stroke-width:2;stroke-linecap:round;stroke-linejoin:round}}
.weft .arrow path{{fill:none;stroke-width:1.5;stroke-linejoin:round}}
.weft .arrow.error path,.weft .arrow.timeout path{{stroke-dasharray:5 4}}
.weft .arrow.taken path{{stroke-width:2.6}}
.weft.live .arrow:not(.taken){{opacity:.6}}
.weft .label rect{{stroke-width:1}}
"""


def style() -> str:
    """Return the style sheet."""
    light = _colours(PAGE, MUTED, LIGHT, ARROWS_LIGHT)
    dark = _colours(PAGE_DARK, MUTED_DARK, DARK, ARROWS_DARK)
    return f"{_FIXED}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n"


def _colours(page: Look, muted: str, boxes: dict[Mark, Look], arrows: dict[ArrowKind, str]) -> str:
    rules = [
        f".page{{fill:{page.fill}}}",
        f".title{{fill:{page.text}}}",
        f".about,.weft .does,.weft .times{{fill:{muted}}}",
        f".label rect{{fill:{page.fill};stroke:{page.line}}}",
    ]
    for mark, look in boxes.items():
        rules += [
            f".{mark} .shape{{fill:{look.fill};stroke:{look.line}}}",
            f".{mark} .bar,.weft .{mark} .dot{{fill:{look.line}}}",
            f".{mark} .sign{{stroke:{look.fill}}}",
            f".{mark} .name,.weft .{mark} .badge text{{fill:{look.text}}}",
            f".{mark} .badge rect{{fill:{look.line};fill-opacity:.18}}",
        ]
    for kind, colour in arrows.items():
        rules += [
            f".{kind} path{{stroke:{colour}}}",
            f".{kind} polygon,.weft .label.{kind} text{{fill:{colour}}}",
        ]
    return "".join(f".weft {rule}\n" for rule in rules)


NARROW: Final = frozenset("ijl.,:;'|!()[]{}ft/ r-")
BROAD: Final = frozenset("mwMW@%—…")


def text_width(text: str, size: float, *, mono: bool = False) -> int:
    """Estimate the width of a text. Because fonts differ, the estimate is on the wide side."""
    units = 0.0
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            units += 1.1
        elif unicodedata.combining(char):
            continue
        elif mono:
            units += 0.63
        elif char in NARROW:
            units += 0.4
        elif char in BROAD:
            units += 0.95
        else:
            units += 0.72 if char.isupper() else 0.62
    return int(units * size) + 1


def fitted(text: str, size: float, width: int, *, mono: bool = False) -> str:
    """Cut a text to a width."""
    if text_width(text, size, mono=mono) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        fits = text_width(f"{text[:middle]}…", size, mono=mono) <= width
        low, high = (middle, high) if fits else (low, middle - 1)
    return f"{text[:low].rstrip()}…"
