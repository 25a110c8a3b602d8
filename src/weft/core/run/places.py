"""Places as people name them: the whole place, or a graph node or goal step without its token or item. Pure."""

from __future__ import annotations


def is_at(place: str, name: str) -> bool:
    """Return whether a place has this name, or is a token at this node, an item of this step or below this scope."""
    return place == name or (place.startswith(name) and place[len(name) : len(name) + 1] in ("/", "["))
