"""Find tools by words in their names, descriptions and parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from weft.agents.tools.spec import ToolSpec

_WORD: Final = re.compile(r"[a-z0-9]+")


def found_tools(query: str, tools: Iterable[ToolSpec], limit: int) -> list[dict[str, Any]]:
    """Return the tools that fit a query best, those with most of its words first. Without words, all of them."""
    words = _words(query)
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
        (4, _words(tool.name)),
        (2, _words(tool.description)),
        (1, _words(" ".join([*parameters, *texts]))),
    )
    return sum(weight * _matches(word, found) for word in words for weight, found in places)


def _matches(word: str, found: Sequence[str]) -> bool:
    """Return whether a word is there, or begins like one that is: "flight" finds "flights"."""
    return any(word == other or (len(word) > 3 and other.startswith(word)) for other in found) or any(
        len(other) > 3 and word.startswith(other) for other in found
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("_", " "))
