"""A run after one of its events, as pictures need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.observe.box_standing import BoxStanding
from weft.observe.pictures import Picture
from weft.observe.places import RunPlace


class RunMoment(msgspec.Struct, frozen=True):
    """What the log of a run says about the moment after an event."""

    seq: int
    workflow: str
    places: Sequence[RunPlace]
    """All places of the run. The first ``begun`` of them had begun."""
    begun: int
    drops: int
    """How many events had dropped places. Between two of them, the dropped places are the same."""
    shown: Mapping[str, BoxStanding]
    """How the boxes of the picture stand."""
    taken: Mapping[str, int]
    """How often each edge of a graph was taken."""


class PictureDrawer(Protocol):
    """Draws one run after any of its events. It may remember what it drew before."""

    def add_places(self, places: Sequence[RunPlace], drops: int, seq: int) -> None:
        """Take note of the places up to the newest event, so that a picture of a long run is not drawn at once."""
        ...

    def draw(self, machine: Any, moment: RunMoment) -> Picture | None:
        """Return the picture of the run as it stands in ``machine``; None if it has none.

        ``machine`` is None for a style whose pictures show only places.
        """
        ...
