"""A burst of starts is accepted first and performed after.

While many starts are under way, new runs are only written down, which is all that their callers wait for. They begin as
soon as it is calm again, and at the latest when the seconds are over for which they were put off: that is in their
rows, so a host that dies in between changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from weft.core.ids import RunUid
from weft.runtime.engine import Engine

STARTS_MAX = 16
"""With more under way at once it is a burst."""
PUT_OFF_MS = 5_000
CALM_SECONDS = 0.02
"""No burst for so long: it is over, and not only between two of its waves."""
RUNS_PER_ROUND = 50


class Burst:
    """Counts the starts under way; runs that are put off are given to it."""

    def __init__(self) -> None:
        self._under_way = 0
        self._last = 0.0
        self._held: deque[tuple[float, RunUid]] = deque()
        self._waiting = False
        """Whether somebody waits for the burst to end."""

    def __enter__(self) -> int:
        """How long the run that is started now is put off, in milliseconds."""
        self._under_way += 1
        return PUT_OFF_MS if self._under_way > STARTS_MAX else 0

    def __exit__(self, *_: object) -> None:
        if self._under_way > STARTS_MAX:
            self._last = time.monotonic()
        self._under_way -= 1

    def hold(self, engine: Engine, uid: RunUid) -> None:
        """This run is durable, and begins when it is calm."""
        now = time.monotonic()
        while self._held and self._held[0][0] <= now:
            self._held.popleft()  # its time has come, which every host sees by itself
        self._held.append((now + PUT_OFF_MS / 1000, uid))
        if not self._waiting:
            self._waiting = True
            engine.background.spawn(self._begin(engine), may_fail=True)  # their rows say when they begin

    async def _begin(self, engine: Engine) -> None:
        try:
            while self._held and not engine.status.closing:
                if self._under_way > STARTS_MAX or time.monotonic() - self._last < CALM_SECONDS:
                    await asyncio.sleep(CALM_SECONDS)
                    continue
                uids = [self._held.popleft()[1] for _ in range(min(RUNS_PER_ROUND, len(self._held)))]
                await engine.claims.claim_new(uids)
                await asyncio.sleep(0)
        finally:
            self._waiting = False
