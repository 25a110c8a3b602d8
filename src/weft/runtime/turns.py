"""Work that never waits takes a small share of each turn of the loop, so that others have theirs.

A store may answer at once: a task that asks it a thousand times then keeps the loop from everybody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from weft.core.ids import HostId, RunUid
from weft.ports.clock import Clock
from weft.ports.store import NewRun
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.duties.scheduler import MEMORY, RUNS, Wakeups
from weft.runtime.runs import RunTable
from weft.runtime.status import HostStatus

SHARE_SECONDS = 0.002
TAKEN_UP_AT_ONCE = 32
FULL_SECONDS = 0.2
"""With memory full, each of these waits so long before it takes up another one."""
UNCOMMITTED_MAX = 16
"""With more runs waiting for a commit, children wait: everybody's next commit would have to wait for theirs."""
BEHIND_SECONDS = 0.005


class Turns:
    """One share per turn of the loop, for all that such work does."""

    def __init__(self, clock: Clock, background: BackgroundTasks) -> None:
        self._clock = clock
        self._background = background
        self._ends: float | None = None

    async def share(self) -> None:
        """Go on at once if something is left of this turn's share, else in a later turn."""
        while self._is_used_up():  # noqa: ASYNC110 - the next turn is what it waits for
            await asyncio.sleep(0)

    def _is_used_up(self) -> bool:
        now = self._clock.monotonic()
        if self._ends is None:
            self._ends = now + SHARE_SECONDS
            self._background.call_soon(self._over)
        return now >= self._ends

    def _over(self) -> None:
        self._ends = None


class Newborn:
    """Children that were just committed: they are taken up in the order of their birth.

    With memory full of runs they wait at rest, for idle runs to leave it. A few are taken up all the same: those in
    memory may be waiting for just these.
    """

    def __init__(
        self,
        host: HostId,
        runs: RunTable,
        status: HostStatus,
        background: BackgroundTasks,
        wakeups: Wakeups,
        *,
        turns: Turns,
        uncommitted: Callable[[], int],
        load: Callable[[RunUid], Awaitable[None]],
    ) -> None:
        """``uncommitted``: how many runs wait for a commit. ``load`` takes a run that is ours into memory."""
        self._host = host
        self._runs = runs
        self._status = status
        self._background = background
        self._wakeups = wakeups
        self._turns = turns
        self._uncommitted = uncommitted
        self._load = load
        self.waiting: dict[RunUid, None] = {}
        self._at_work = 0

    def adopt(self, child: NewRun) -> None:
        """Take up a child that was just committed, with its start in its inbox, or leave it to whoever can run it."""
        if child.owner == self._host:
            self.add(child.uid)
        else:
            self._wakeups.wake(RUNS)

    def add(self, uid: RunUid) -> None:
        """Load a run that is ours, when its turn comes."""
        self.waiting[uid] = None
        self._begin()

    def _begin(self) -> None:
        if self._at_work < TAKEN_UP_AT_ONCE:
            self._at_work += 1
            # A child that cannot be taken up now is found by ``reconcile``.
            self._background.spawn(self._take_up(), may_fail=True)

    async def _take_up(self) -> None:
        try:
            while self.waiting and self._status.running:
                if not self._runs.room():
                    self._wakeups.wake(MEMORY)
                    await asyncio.sleep(FULL_SECONDS)
                while self._uncommitted() > UNCOMMITTED_MAX:  # noqa: ASYNC110 - it is told of no single commit
                    await asyncio.sleep(BEHIND_SECONDS)
                await self._turns.share()
                if self.waiting:
                    uid = next(iter(self.waiting))
                    del self.waiting[uid]
                    await self._load(uid)
        finally:
            self._at_work -= 1
            if self.waiting and self._status.running:
                self._begin()
