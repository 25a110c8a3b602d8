"""How often something had happened after any event of a run, counted from checkpoints. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable
from operator import itemgetter
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
_done = itemgetter(0)

BETWEEN_MIN = 512
"""How many entries lie between two checkpoints, at least. There are more if there are many keys to copy."""


class KeyCounts(Generic[K]):
    """Counts keys that are added in the order of events. Looking back costs no more than what lies between two
    checkpoints.
    """

    def __init__(self, between: int = BETWEEN_MIN) -> None:
        self._numbers: list[int] = []
        self._keys: list[K] = []
        self._between = between
        self._checkpoints: list[tuple[int, Counter[K]]] = [(0, Counter())]
        """Each says how many entries it has counted."""

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, number: int, key: K) -> None:
        """Count a key that belongs to an event, or to whatever else the numbers count."""
        self._numbers.append(number)
        self._keys.append(key)
        done, counted = self._checkpoints[-1]
        if len(self._keys) - done >= max(self._between, 2 * len(counted)):
            self._checkpoints.append((len(self._keys), counted + Counter(self._keys[done:])))

    def until(self, number: int) -> Counter[K]:
        """Return how often each key was added with a number or before."""
        end = bisect_right(self._numbers, number)
        index = bisect_right(self._checkpoints, end, key=_done) - 1
        done, counted = self._checkpoints[index]
        found = counted.copy()
        found.update(self._keys[done:end])
        return found
