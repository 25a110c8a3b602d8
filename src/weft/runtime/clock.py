"""The real clocks and real ids."""

from __future__ import annotations

import time

import uuid_utils

from weft.core.ids import Millis


class SystemClock:
    """The machine's own."""

    def now_ms(self) -> Millis:
        return Millis(time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        return time.monotonic()


class TimeIds:
    """UUIDs of version 7: new, and ordered by time."""

    def new(self) -> str:
        return uuid_utils.uuid7().hex
