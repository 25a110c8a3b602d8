"""Times to come of the runs in memory: one heap, one wake-up of the loop.

Due times are of the wall clock and may be far away; the loop's own timer is armed for at most a few seconds, so that a jump of the wall
clock against the monotonic one (a sleeping laptop, a corrected clock) is seen at the next look.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable

from weft.ports.clock import Clock

LOOK_SECONDS_MAX = 1.0


class Timers:
    """Calls back at or after a wall-clock time, once per key; arming a key again replaces it."""

    def __init__(self, clock: Clock, fire: Callable[[Hashable], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._heap: list[tuple[int, int, Hashable]] = []
        self._due: dict[Hashable, int] = {}
        self._made = 0
        self._armed: asyncio.TimerHandle | None = None
        self._armed_for = 0

    def __len__(self) -> int:
        return len(self._due)

    def arm(self, key: Hashable, due: int) -> None:
        """Fire ``key`` at ``due`` (at the next turn of the loop if that has passed)."""
        self._due[key] = due
        self._made += 1
        heapq.heappush(self._heap, (due, self._made, key))
        if self._armed is None or due < self._armed_for:
            self._rearm()

    def disarm(self, key: Hashable) -> None:
        """Forget ``key``; its place in the heap goes when its time comes, or when the heap is mostly such places."""
        self._due.pop(key, None)
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._due):
            self._heap = [item for item in self._heap if self._due.get(item[2]) == item[0]]
            heapq.heapify(self._heap)

    def close(self) -> None:
        """Fire nothing any more."""
        if self._armed is not None:
            self._armed.cancel()
        self._armed = None
        self._heap.clear()
        self._due.clear()

    def _rearm(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        if not self._heap:
            return
        self._armed_for = self._heap[0][0]
        seconds = (self._armed_for - self._clock.now_ms()) / 1000
        loop = asyncio.get_running_loop()
        self._armed = loop.call_later(min(max(seconds, 0), LOOK_SECONDS_MAX), self._look)

    def _look(self) -> None:
        self._armed = None
        now = self._clock.now_ms()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self._fire(key)
        self._rearm()
