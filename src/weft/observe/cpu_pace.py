"""How often something may be done again that costs CPU time, so that it takes little of a process that is busy."""

from __future__ import annotations

import time
from collections.abc import Callable


class CpuPace:
    """A pace at which something takes at most a share of the CPU time that the process uses.

    A process that uses little would wait long for that, so a small share of the time itself is always allowed.
    """

    def __init__(
        self,
        share: float,
        share_of_time: float,
        seconds_max: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.process_time,
    ) -> None:
        """``seconds_max`` is the longest pause, whatever something has cost."""
        self._share = share
        self._share_of_time = share_of_time
        self._seconds_max = seconds_max
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._cost = 0.0
        self._at = self._cpu_at = 0.0

    def spend(self, seconds: float) -> None:
        """Say that it was done just now, and what CPU time it took."""
        self._cost, self._at, self._cpu_at = seconds, self._clock(), self._cpu_clock()

    def is_due(self) -> bool:
        """Return whether it may be done again."""
        used, passed = self._cpu_clock() - self._cpu_at, self._clock() - self._at
        return (
            used * self._share >= self._cost
            or passed * self._share_of_time >= self._cost
            or passed >= self._seconds_max
        )
