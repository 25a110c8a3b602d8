"""Protocols for time and ids, so that a simulated world can supply its own."""

from __future__ import annotations

from typing import Protocol

from weft.core.ids import Millis


class Clock(Protocol):
    """Two clocks: the time of day, which may jump, and a monotonic clock."""

    def now_ms(self) -> Millis:
        """Return the time of day in milliseconds since 1970. It may jump in both directions."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back. Only differences are meaningful."""
        ...


class Ids(Protocol):
    """A source of new ids."""

    def new(self) -> str:
        """Return a new unique id: 32 hexadecimal digits, ordered by time."""
        ...
