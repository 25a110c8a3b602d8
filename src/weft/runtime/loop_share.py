"""Limit work that never waits to a small share of each turn of the loop, so that other tasks can run.

A store may answer without waiting. A task that calls it a thousand times would then block the loop.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable

from weft.core.ids import HostId, RunUid
from weft.ports.clock import Clock
from weft.ports.new_run import NewRun
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.duties.scheduler import MEMORY, RUNS, Wakeups
from weft.runtime.runs import RunTable
from weft.runtime.status import HostStatus

SHARE_SECONDS = 0.001
LOADS_AT_ONCE = 32
FULL_SECONDS = 0.2
"""How long each loading task waits between two runs while memory is full."""
UNCOMMITTED_MAX = 16
"""With more runs than this waiting for a commit, new children are not loaded, so that they do not delay commits."""
BEHIND_SECONDS = 0.005
CALLED_SECONDS = 0.1
"""For how long after a call new children are loaded, and documents read, slowly."""
PAUSE_SECONDS = 0.008
"""How long this work then pauses after each share."""


class Callers:
    """Knows whether somebody outside has just called this host."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.calls = 0
        """How many calls there were. Whoever takes one adds one."""
        self._seen = 0
        self._seen_at = -math.inf
        self._share_ends = -math.inf
        self._resting = threading.Lock()

    def pause(self) -> float:
        """Return how many seconds other work should pause after each share, so that answers are not late."""
        now = self._clock.monotonic()
        if self.calls != self._seen:
            self._seen, self._seen_at = self.calls, now
        return PAUSE_SECONDS if now - self._seen_at < CALLED_SECONDS else 0.0

    def give_way(self) -> None:
        """Pause in a thread that computes for long, if it has used up its share. All such threads have one share.

        Without pauses, each turn of the loop and each call of the store would wait for the interpreter lock.
        """
        if self._clock.monotonic() < self._share_ends:
            return
        pause = self.pause()
        if pause:
            with self._resting:
                time.sleep(pause)
        self._share_ends = self._clock.monotonic() + SHARE_SECONDS


class Turns:
    """Limits the time that work which never waits takes in each turn of the loop."""

    def __init__(self, clock: Clock, background: BackgroundTasks, pause: Callable[[], float] = lambda: 0.0) -> None:
        """``pause`` returns how many seconds lie between two shares at least."""
        self._clock = clock
        self._background = background
        self._pause = pause
        self._ends: float | None = None

    async def share(self) -> None:
        """Return at once if time is left in this turn's share, else in a later turn."""
        while self._is_share_used():  # noqa: ASYNC110 - it waits for a later turn of the loop
            await asyncio.sleep(self._pause())

    def _is_share_used(self) -> bool:
        now = self._clock.monotonic()
        if self._ends is None:
            self._ends = now + SHARE_SECONDS
            self._background.call_later(self._pause(), self._end_turn)
        return now >= self._ends

    def _end_turn(self) -> None:
        self._ends = None


class NewChildren:
    """Children that were just committed. They are loaded in the order of their creation.

    While memory is full, they wait until idle runs have left it. A few are loaded nevertheless, because the runs in
    memory may be waiting for exactly these children.
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
        """``uncommitted`` returns how many runs wait for a commit. ``load`` loads a run that this host owns."""
        self._host = host
        self._runs = runs
        self._status = status
        self._background = background
        self._wakeups = wakeups
        self._turns = turns
        self._uncommitted = uncommitted
        self._load = load
        self.waiting: dict[RunUid, None] = {}
        self._loading = 0
        self._next = asyncio.Lock()
        """Held by the one loading task that waits for a share of a turn, so that the others do not wake up as well."""

    def adopt(self, child: NewRun) -> None:
        """Load a child that was just committed if this host owns it, else let any host that can run it claim it."""
        if child.owner == self._host:
            self.add(child.uid)
        else:
            self._wakeups.wake(RUNS)

    def add(self, uid: RunUid) -> None:
        """Load a run that this host owns, when its turn comes."""
        self.waiting[uid] = None
        self._begin_loading()

    def _begin_loading(self) -> None:
        if self._loading < LOADS_AT_ONCE:
            self._loading += 1
            # If loading a child fails, ``reconcile`` finds it later.
            self._background.spawn(self._load_waiting(), may_fail=True)

    async def _load_waiting(self) -> None:
        try:
            while self.waiting and self._status.running:
                if not self._runs.room():
                    self._wakeups.wake(MEMORY)
                    await asyncio.sleep(FULL_SECONDS)
                while self._uncommitted() > UNCOMMITTED_MAX:  # noqa: ASYNC110 - there is no event for a single commit
                    await asyncio.sleep(BEHIND_SECONDS)
                async with self._next:
                    await self._turns.share()
                if self.waiting:
                    uid = next(iter(self.waiting))
                    del self.waiting[uid]
                    await self._load(uid)
        finally:
            self._loading -= 1
            if self.waiting and self._status.running:
                self._begin_loading()
