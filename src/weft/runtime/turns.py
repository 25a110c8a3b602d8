"""Work that never waits takes a small share of each turn of the loop, so that others have theirs.

A store may answer at once: a task that asks it a thousand times then keeps the loop from everybody else.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from weft.core.ids import RunUid
from weft.runtime.duties.scheduler import MEMORY

if TYPE_CHECKING:
    from weft.runtime.engine import Engine

SHARE_SECONDS = 0.002
TAKEN_UP_AT_ONCE = 32
FULL_SECONDS = 0.2
"""With memory full, each of these waits so long before it takes up another one."""
UNCOMMITTED_MAX = 16
"""With more runs waiting for a commit, children wait: everybody's next commit would have to wait for theirs."""
BEHIND_SECONDS = 0.005


class Turns:
    """One share per turn of the loop, for all that such work does."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ends: float | None = None

    async def share(self) -> None:
        """Go on at once if something is left of this turn's share, else in a later turn."""
        while self._is_used_up():  # noqa: ASYNC110 - the next turn is what it waits for
            await asyncio.sleep(0)

    def _is_used_up(self) -> bool:
        now = self._engine.clock.monotonic()
        if self._ends is None:
            self._ends = now + SHARE_SECONDS
            self._engine.background.call_soon(self._over)
        return now >= self._ends

    def _over(self) -> None:
        self._ends = None


class Newborn:
    """Children that were just committed: they are taken up in the order of their birth.

    With memory full of runs they wait at rest, for idle runs to leave it. A few are taken up all the same: those in
    memory may be waiting for just these.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.waiting: dict[RunUid, None] = {}
        self._at_work = 0

    def add(self, uid: RunUid) -> None:
        self.waiting[uid] = None
        self._begin()

    def _begin(self) -> None:
        if self._at_work < TAKEN_UP_AT_ONCE:
            self._at_work += 1
            # A child that cannot be taken up now is found by ``reconcile``.
            self._engine.background.spawn(self._take_up(), may_fail=True)

    async def _take_up(self) -> None:
        engine = self._engine
        try:
            while self.waiting and engine.status.running:
                if len(engine.runs.actors) >= engine.settings.resident_max:
                    engine.wakeups.wake(MEMORY)
                    await asyncio.sleep(FULL_SECONDS)
                while engine.committer.waiting > UNCOMMITTED_MAX:  # noqa: ASYNC110 - it is told of no single commit
                    await asyncio.sleep(BEHIND_SECONDS)
                await engine.turns.share()
                if self.waiting:
                    uid = next(iter(self.waiting))
                    del self.waiting[uid]
                    await engine.take_up(uid)
        finally:
            self._at_work -= 1
            if self.waiting and engine.status.running:
                self._begin()
