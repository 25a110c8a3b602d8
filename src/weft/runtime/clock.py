"""The real clocks and ids, and the time that all hosts of a store share."""

from __future__ import annotations

import time

import uuid_utils

from weft.core.ids import Millis
from weft.ports.clock import Clock
from weft.ports.store import Store


class SystemClock:
    """The clocks of this machine."""

    def now_ms(self) -> Millis:
        return time.time_ns() // 1_000_000  # type: ignore[return-value]  # a call would cost more than the division

    monotonic = staticmethod(time.monotonic)


class StoreClock:
    """The time of the store, so that hosts whose own clocks differ agree on what is due."""

    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock = clock
        self._store = store
        self.monotonic = clock.monotonic

    def now_ms(self) -> Millis:
        return self._clock.now_ms() + self._store.offset_ms  # type: ignore[return-value]  # as above


class TimeIds:
    """Makes UUIDs of version 7, which are ordered by time."""

    def new(self) -> str:
        return uuid_utils.uuid7().hex
