"""A cache of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


def _count_as_one(_value: object) -> int:
    return 1


class BoundedCache(Generic[K, V]):
    """A mapping that drops its least recently used entries when they exceed ``size_max`` together.

    ``size_of`` measures a value; without it, entries are counted. The newest entry stays, however large it is. Safe to
    use from several threads.
    """

    def __init__(self, size_max: int, size_of: Callable[[V], int] = _count_as_one) -> None:
        self._size_max = size_max
        self._size_of = size_of
        self._size = 0
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._writing = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value of a key, and count that as a use. None: there is none."""
        value = self._entries.get(key)
        if value is not None:
            try:  # noqa: SIM105  # contextlib.suppress costs more than all the rest
                self._entries.move_to_end(key)
            except KeyError:
                # Another thread dropped it meanwhile.
                pass
        return value

    def put(self, key: K, value: V) -> None:
        """Add or replace an entry."""
        with self._writing:
            old = self._entries.pop(key, None)
            if old is not None:
                self._size -= self._size_of(old)
            self._entries[key] = value
            self._size += self._size_of(value)
            while self._size > self._size_max and len(self._entries) > 1:
                _, dropped = self._entries.popitem(last=False)
                self._size -= self._size_of(dropped)
