"""Wrap texts, with widths in any unit. Pure."""

from __future__ import annotations

from collections.abc import Callable

JOINTS = "._/&|,;:(["
"""Characters after which a text without blanks may be broken."""


def wrapped(text: str, lines_max: int, fits: Callable[[str], bool], cut: Callable[[str], str]) -> list[str]:
    """Break a text into lines that fit, preferably between words or after joints. The last line is cut."""
    lines: list[str] = []
    rest = text
    while rest and len(lines) < lines_max - 1 and not fits(rest):
        end = _break(rest, fits)
        lines.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*lines, cut(rest)] if rest else lines


def _break(text: str, fits: Callable[[str], bool]) -> int:
    longest = 1
    while longest < len(text) and fits(text[: longest + 1]):
        longest += 1
    blank = text.rfind(" ", 1, longest + 1)
    if blank > longest // 3:
        return blank
    joint = max(text.rfind(char, 1, longest) for char in JOINTS)
    return joint + 1 if joint > longest // 3 else blank if blank > 0 else longest
