"""How fast old runs are deleted: in writes that take little time each, with rests in proportion between them.

Whoever starts a run meanwhile waits for one such write at most. How much a write may delete in that time depends on
the store, the disk and what else goes on, so it is learned from the writes themselves.
"""

from __future__ import annotations

import asyncio

from weft.ports.clock import Clock

WRITE_SECONDS = 0.004
"""How long a write should take. It is about as long as a commit, so a start beside it takes up to twice as long."""
LEAST = 20
"""A write never gets smaller than the largest one divided by this: each has costs that do not depend on its size."""
REST_SECONDS_MIN = 0.005
SLOW_SECONDS = 0.25
"""A write that took longer than this says that the store has enough to do."""
SLOW_SHARE = 40
REST_SECONDS_MAX = 60.0


class WriteSize:
    """How many things the next write deletes."""

    def __init__(self, most: int) -> None:
        self._least, self._most = max(1, most // LEAST), most
        self.now = max(1, most // 4)

    def adapt(self, seconds: float) -> None:
        """Learn how long the last write took."""
        if seconds > WRITE_SECONDS:
            self.now = max(self._least, self.now // 2)
        else:
            self.now = min(self._most, self.now + max(1, self.now // 4))


class Rest:
    """Rests between writes, for ``share`` times as long as the last one took."""

    def __init__(self, clock: Clock, share: int) -> None:
        self._clock = clock
        self._share = share
        self._wrote_at = clock.monotonic()

    def begin(self) -> None:
        """Begin a series of writes. Nothing was written since the last one."""
        self._wrote_at = self._clock.monotonic()

    async def take(self) -> None:
        """Wait before the next write."""
        took = self._clock.monotonic() - self._wrote_at
        share = SLOW_SHARE if took > SLOW_SECONDS else self._share
        await asyncio.sleep(min(max(took * share, REST_SECONDS_MIN), REST_SECONDS_MAX))
        self._wrote_at = self._clock.monotonic()
