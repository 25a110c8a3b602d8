"""Style sheet and text widths of SVG pictures.

Every rule begins with ``.weft``, so that an embedded picture styles only itself. The style sheet has plain rules and
one media query, but no variables or scripts, which not every SVG viewer supports.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from weft.observe.pictures.colours import DARK, LIGHT, MONO, SANS, Theme

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
    return f"{_FIXED}{_colours(LIGHT)}@media (prefers-color-scheme:dark){{\n{_colours(DARK)}}}\n"


def _colours(theme: Theme) -> str:
    page = theme.page
    rules = [
        f".page{{fill:{page.fill}}}",
        f".title{{fill:{page.text}}}",
        f".about,.weft .does,.weft .times{{fill:{theme.muted}}}",
        f".label rect{{fill:{page.fill};stroke:{page.line}}}",
    ]
    for mark, look in theme.boxes.items():
        rules += [
            f".{mark} .shape{{fill:{look.fill};stroke:{look.line}}}",
            f".{mark} .bar,.weft .{mark} .dot{{fill:{look.line}}}",
            f".{mark} .sign{{stroke:{look.fill}}}",
            f".{mark} .name,.weft .{mark} .badge text{{fill:{look.text}}}",
            f".{mark} .badge rect{{fill:{look.line};fill-opacity:.18}}",
        ]
    for kind, colour in theme.arrows.items():
        rules += [
            f".{kind} path{{stroke:{colour}}}",
            f".{kind} polygon{{fill:{colour}}}",
            f".label.{kind} text{{fill:{theme.labels[kind]}}}",
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
