"""Time and names from outside, so that a simulated world can bring its own."""

from __future__ import annotations

from typing import Protocol

from weft.core.ids import Millis


class Clock(Protocol):
    """Two clocks: one that people read and that may jump, one that only goes forward."""

    def now_ms(self) -> Millis:
        """The time of day, in milliseconds since 1970. May jump either way."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back. Only differences mean something."""
        ...


class Ids(Protocol):
    """Where new names come from."""

    def new(self) -> str:
        """A name that nobody had before: 32 hexadecimal digits, ordered by time."""
        ...
