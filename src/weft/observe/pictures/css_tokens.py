"""The colours of pictures as CSS custom properties, for the web UI and the page behind a decision link. Pure.

``--page-fill``, ``--page-line`` and ``--page-text`` are the page itself, ``--done-fill`` and so on the looks of a
state, ``--arrow-error`` and ``--label-error`` a line and its text. ``--accent`` is the one colour of what can be
clicked, and ``--on-accent`` the text on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.observe.pictures.colours import DARK, LIGHT, Look, Theme


def css_tokens() -> str:
    """Return rules that follow the theme of the system, unless ``data-theme`` of the root element fixes it."""
    light, dark = _declarations(LIGHT, "light"), _declarations(DARK, "dark")
    return (
        f':root,\n:root[data-theme="light"] {{\n{light}}}\n\n'
        f"@media (prefers-color-scheme: dark) {{\n:root {{\n{dark}}}\n}}\n\n"
        f':root[data-theme="dark"] {{\n{dark}}}\n'
    )


def _declarations(theme: Theme, scheme: str) -> str:
    rows = [("color-scheme", scheme), *(("--" + name, colour) for name, colour in _tokens(theme))]
    return "".join(f"  {name}: {value};\n" for name, value in rows)


def _tokens(theme: Theme) -> Iterator[tuple[str, str]]:
    yield from _look("page", theme.page)
    yield "muted", theme.muted
    yield "control", theme.control
    yield "accent", theme.boxes["working"].line
    yield "on-accent", LIGHT.boxes["idle"].fill if theme is LIGHT else DARK.page.fill
    for mark, look in theme.boxes.items():
        yield from _look(mark, look)
    yield from _look("held", theme.held)
    for kind, colour in theme.arrows.items():
        yield f"arrow-{kind}", colour
        yield f"label-{kind}", theme.labels[kind]


def _look(name: str, look: Look) -> Iterator[tuple[str, str]]:
    yield f"{name}-fill", look.fill
    yield f"{name}-line", look.line
    yield f"{name}-text", look.text
