"""Which box of the picture a location of a run belongs to."""

from __future__ import annotations

from weft.observe.places import box_of
from weft.observe.styles import views_of


def box_at(style: str, location: str) -> str:
    """Return the box of a location, as the state of a run names it; empty if there is no location."""
    return location.partition("/")[0] if views_of(style).has_nodes else box_of(location)
