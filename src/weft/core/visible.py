"""Make users' text safe to print: characters that move the cursor or hide text are spelled out. Pure."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except line breaks and tabs
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that change the writing direction
    r"\u2028\u2029\ufff9-\ufffb]"
)
_BREAKS = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\x1b": r"\e"}


def visible(text: str) -> str:
    """Spell out control characters. Line breaks and tabs stay."""
    return _UNSEEN.sub(_spelled, text) if not text.isprintable() else text


def visible_line(text: str) -> str:
    """Spell out control characters, line breaks and tabs, so that the text is one line."""
    if text.isprintable():
        return text
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def visible_json(text: str) -> str:
    """Escape in JSON the characters that ``visible`` spells out. JSON itself escapes only some of them."""
    return text if text.isprintable() else _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spelled(found: re.Match[str]) -> str:
    char = found[0]
    return _BREAKS.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}")
