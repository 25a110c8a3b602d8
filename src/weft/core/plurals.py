"""Format counts with singular and plural nouns. Pure."""

from __future__ import annotations


def pluralize(number: int, noun: str) -> str:
    """Format a count with its noun: "1 node", "2 nodes", "1,000 branches"."""
    ending = "" if number == 1 else "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{number:,} {noun}{ending}"
