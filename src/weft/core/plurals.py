"""Format what goes into sentences: counts with their nouns, words with their articles, and texts of strangers. Pure."""

from __future__ import annotations

import re

QUOTED_MAX = 200
"""The longest text of a stranger that an error quotes."""


def pluralize(number: int, noun: str) -> str:
    """Format a count with its noun: "1 node", "2 nodes", "1,000 branches"."""
    ending = "" if number == 1 else "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{number:,} {noun}{ending}"


def with_article(word: str) -> str:
    """Put the indefinite article before a word: "a node", "an object"."""
    return f"an {word}" if word[:1].lower() in "aeiou" else f"a {word}"


def shortened(text: str, chars_max: int = QUOTED_MAX) -> str:
    """Return a text to be quoted in an error. A longer one ends in an ellipsis."""
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def with_short_words(text: str) -> str:
    """Return a text that quotes names of strangers, with its long words shortened."""
    return _LONG_WORD.sub(lambda word: shortened(word[0]), text)


_LONG_WORD = re.compile(rf'[^\s"]{{{QUOTED_MAX + 1},}}')
