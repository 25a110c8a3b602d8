"""Find tools by words in their names, descriptions and parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from weft.agents.tools.spec import ToolSpec

_WORD: Final = re.compile(r"[a-z0-9]{1,40}")
_WORDS_MAX: Final = 50
"""How many words of a query are looked for. Models have sent pages."""
_BEGINNING: Final = 4
"""From so many letters on, words are alike if one begins like the other."""


def found_tools(query: str, tools: Iterable[ToolSpec], limit: int) -> list[dict[str, Any]]:
    """Return the tools that fit a query best, those with most of its words first. Without words, all of them."""
    words = list(dict.fromkeys(_words(query)))[:_WORDS_MAX]
    scored = [(_score(words, tool), tool) for tool in tools]
    fitting = [pair for pair in scored if pair[0] > 0 or not words]
    fitting.sort(key=lambda pair: (-pair[0], pair[1].name))
    return [
        {"name": tool.name, "kind": tool.kind, "description": tool.description, "schema": tool.schema}
        for _, tool in fitting[:limit]
    ]


def _score(words: Sequence[str], tool: ToolSpec) -> int:
    parameters = tool.schema.get("properties", {})
    texts = [str(part.get("description", "")) for part in parameters.values() if isinstance(part, dict)]
    places = (
        (4, frozenset(_words(tool.name))),
        (2, frozenset(_words(tool.description))),
        (1, frozenset(_words(" ".join([*parameters, *texts])))),
    )
    return sum(weight * _matches(word, found) for word in words for weight, found in places)


def _matches(word: str, found: AbstractSet[str]) -> bool:
    """Return whether a word is there, or begins like one that is: "flight" finds "flights"."""
    if word in found or any(word[:length] in found for length in range(_BEGINNING, len(word))):
        return True
    return len(word) >= _BEGINNING and any(other.startswith(word) for other in found)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("_", " "))
