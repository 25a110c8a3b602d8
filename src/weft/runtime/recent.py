"""Inputs of runs that were opened lately: a large one is not read again for every token that looks into it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from weft.core.run.composites import size_of

SMALL_BYTES = 1024
"""Below this, reading again costs less than remembering."""


class Recent:
    """Bounded by the bytes of what was opened, oldest out first. Whoever is given a value only looks at it."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._known: OrderedDict[int, tuple[Raw, Any, int]] = OrderedDict()
        """By identity; the value is kept beside what it was made of, so that its identity stays its own."""

    def recall(self, raw: Raw, read: Callable[[], Any]) -> Any:
        """What this value stands for: remembered, or opened now."""
        known = self._known.get(id(raw))
        if known is not None:
            self._known.move_to_end(id(raw))
            return known[1]
        value, size = read(), size_of(raw)
        if SMALL_BYTES <= size <= self._bytes_max:
            self._known[id(raw)] = (raw, value, size)
            self._bytes += size
            while self._bytes > self._bytes_max:
                _, (_, _, gone) = self._known.popitem(last=False)
                self._bytes -= gone
        return value
