"""Escape characters in users' text that move the cursor or hide text, so that it is safe to print. Pure."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except line breaks and tabs
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that change the writing direction
    r"\u2028\u2029\ufff9-\ufffb]"
)
_BREAKS = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\x1b": r"\e"}


def escape_controls(text: str) -> str:
    """Escape control characters, except line breaks and tabs."""
    return _UNSAFE.sub(_escape_match, text) if not text.isprintable() else text


def escape_line(text: str) -> str:
    """Escape control characters, line breaks and tabs, so that the text is one line."""
    if text.isprintable():
        return text
    return escape_controls(text).replace("\n", r"\n").replace("\t", r"\t")


def escape_json(text: str) -> str:
    """Escape in JSON the characters that ``escape_controls`` escapes.

    JSON itself requires only some of these escapes.
    """
    return text if text.isprintable() else _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape_match(match: re.Match[str]) -> str:
    char = match[0]
    return _BREAKS.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}")
