"""The timers of the runs in memory, in one heap with one timer of the loop.

Due times are in wall-clock time and may be far away. The loop's own timer is armed for at most a second, so that a jump
of the wall clock (a sleeping laptop, a corrected clock) is noticed at the next check.

Rules: docs/internals/engine.md#rule-16.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable

from weft.core.ids import EntryId, RunUid
from weft.ports.clock import Clock

log = logging.getLogger("weft")

Fire = Callable[[RunUid, EntryId], None]


class Timers:
    """Calls back at or after a wall-clock time, once per (run, entry). Arming an entry again replaces its time."""

    def __init__(self, clock: Clock, fire: Fire, *, look_seconds: float = 1.0) -> None:
        self._clock = clock
        self._look_seconds = look_seconds
        self._fire = fire
        self._heap: list[tuple[int, RunUid, EntryId]] = []
        self._due: dict[RunUid, dict[EntryId, int]] = {}
        self._count = 0
        self._armed: asyncio.TimerHandle | None = None
        self._armed_for = 0

    def __len__(self) -> int:
        return self._count

    def arm(self, uid: RunUid, entry: EntryId, due: int) -> None:
        """Fire at ``due`` (at the next turn of the loop if that has passed)."""
        entries = self._due.setdefault(uid, {})
        self._count += entry not in entries
        entries[entry] = due
        heapq.heappush(self._heap, (due, uid, entry))
        if self._armed is None or due < self._armed_for:
            self._rearm_loop_timer()

    def disarm(self, uid: RunUid, entry: EntryId) -> None:
        """Forget one entry. It stays in the heap until it is due, or until most of the heap is forgotten entries."""
        entries = self._due.get(uid)
        if entries is not None and entries.pop(entry, None) is not None:
            self._count -= 1
            if not entries:
                del self._due[uid]
            self._prune_heap()

    def disarm_run(self, uid: RunUid) -> None:
        """Forget all entries of a run."""
        forgotten = self._due.pop(uid, None)
        if forgotten:
            self._count -= len(forgotten)
            self._prune_heap()

    def close(self) -> None:
        """Stop firing timers."""
        if self._armed is not None:
            self._armed.cancel()
        self._armed = None
        self._heap.clear()
        self._due.clear()
        self._count = 0

    def _prune_heap(self) -> None:
        if len(self._heap) > 64 and len(self._heap) > 2 * self._count:
            self._heap = [item for item in self._heap if self._due.get(item[1], {}).get(item[2]) == item[0]]
            heapq.heapify(self._heap)

    def _rearm_loop_timer(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        if not self._heap:
            return
        self._armed_for = self._heap[0][0]
        seconds = (self._armed_for - self._clock.now_ms()) / 1000
        loop = asyncio.get_running_loop()
        self._armed = loop.call_later(min(max(seconds, 0), self._look_seconds), self._fire_due)

    def _fire_due(self) -> None:
        self._armed = None
        now = self._clock.now_ms()
        while self._heap and self._heap[0][0] <= now:
            due, uid, entry = heapq.heappop(self._heap)
            entries = self._due.get(uid)
            if entries is not None and entries.get(entry) == due:
                self.disarm(uid, entry)
                try:
                    self._fire(uid, entry)
                except Exception:
                    # Continue with the timers of other runs. This one is armed again when its run is reloaded.
                    log.exception("weft: could not fire a timer of %s", uid)
        self._rearm_loop_timer()
