"""Colours and fonts of pictures and of the web UI: one table for both, in a light and a dark theme.

Text has a contrast of at least 4.5 to what it stands on, and a line that means something at least 3 (WCAG 2.2 AA);
a test holds this.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.observe.pictures.model import ArrowKind, Mark

SANS: Final = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
MONO: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


class Look(NamedTuple):
    """Fill, border and text of a box."""

    fill: str
    line: str
    text: str


class Theme(NamedTuple):
    """All colours of a theme.

    ``held`` is the look of runs that are paused or held, a state that boxes do not have. ``labels`` are the texts at
    arrows; they are darker than the arrows, because small text needs more contrast than a line. ``control`` is the
    border of whatever can be typed into or pressed.
    """

    page: Look
    muted: str
    control: str
    boxes: dict[Mark, Look]
    held: Look
    arrows: dict[ArrowKind, str]
    labels: dict[ArrowKind, str]


LIGHT: Final = Theme(
    page=Look("#fbfcfd", "#dde2e9", "#1d2733"),
    muted="#5f6b7a",
    control="#7a8695",
    boxes={
        "idle": Look("#ffffff", "#bcc5d1", "#1d2733"),
        "done": Look("#eef8f2", "#3d9d6c", "#14432b"),
        "working": Look("#e7f0fe", "#2b6fdb", "#123668"),
        "waiting": Look("#fff5dc", "#b57d0e", "#5b3f03"),
        "queued": Look("#f3f0fd", "#8673d3", "#382a75"),
        "failed": Look("#fdecec", "#d24545", "#6d1717"),
        "skipped": Look("#f7f8fa", "#cfd5dd", "#626d7b"),
    },
    held=Look("#f3edfd", "#7a4fc9", "#40217d"),
    arrows={"main": "#5d6a7a", "back": "#5a6fd0", "error": "#d24545", "timeout": "#b97f10"},
    labels={"main": "#5d6a7a", "back": "#4c60c6", "error": "#c23b3b", "timeout": "#8f6208"},
)
DARK: Final = Theme(
    page=Look("#0f141a", "#2b3440", "#e3e9f0"),
    muted="#93a0af",
    control="#6b7787",
    boxes={
        "idle": Look("#1b222c", "#4a5666", "#e3e9f0"),
        "done": Look("#152a20", "#3d9d6c", "#c2ecd3"),
        "working": Look("#14263f", "#5b96f0", "#d3e4ff"),
        "waiting": Look("#322809", "#d9a436", "#fbe6b4"),
        "queued": Look("#241f3d", "#9787dd", "#ded7fb"),
        "failed": Look("#3a1818", "#e46a6a", "#ffd2d2"),
        "skipped": Look("#161b22", "#333d4a", "#8793a1"),
    },
    held=Look("#281b42", "#a487e8", "#e4d8fc"),
    arrows={"main": "#9aa7b6", "back": "#8d9df0", "error": "#ee7b7b", "timeout": "#dfae4c"},
    labels={"main": "#9aa7b6", "back": "#8d9df0", "error": "#ee7b7b", "timeout": "#dfae4c"},
)
