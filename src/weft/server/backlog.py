"""How long work has waited that nobody could take up yet. When that grows, new runs are turned away at the door."""

from __future__ import annotations

import math
import time

from weft.core.ids import RunUid
from weft.runtime.engine import Engine
from weft.runtime.worker.flight import Flight
from weft.server.limits import busy

LOOK_SECONDS = 1.0
RETRY_SECONDS_MAX = 60


class Backlog:
    """Looks at most once a second, however many ask."""

    def __init__(self) -> None:
        self._looked = -math.inf
        self._age = 0.0

    async def age_seconds(self, engine: Engine) -> float:
        """The age of the oldest piece of work that waits for a slot, or for room in memory."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._age = max(_waiting_for_slot(engine), await _waiting_for_room(engine)) / 1000
        return self._age

    async def admit(self, engine: Engine, limit_seconds: float) -> None:
        """Refuse a new run while the backlog is old. Raises RequestRefused."""
        age = await self.age_seconds(engine)
        if age > limit_seconds:
            raise busy(
                f"Work has waited for {age:.0f} s; new runs are taken again below {limit_seconds:g} s.",
                min(RETRY_SECONDS_MAX, math.ceil(age - limit_seconds) + 1),
            )


def _waiting_for_slot(engine: Engine) -> int:
    flight = engine.worker.next_queued()
    return max(0, engine.clock.now_ms() - _since(engine, flight)) if flight is not None else 0


def _since(engine: Engine, flight: Flight) -> int:
    state = engine.runs.state_of(RunUid(flight.uid))
    task = state.tasks.get(flight.effect.task) if state is not None else None
    return max(task.since, task.due) if task is not None else engine.clock.now_ms()


async def _waiting_for_room(engine: Engine) -> int:
    if not engine.claims.backlog and not engine.runs.is_full():
        return 0
    now = engine.clock.now_ms()
    rows = await engine.store.directory.claimable(engine.catalogue.programs(), dead=(), now=now, limit=1)
    if not rows:
        return 0
    since = rows[0].wake_at or (rows[0].updated_at if rows[0].seq else rows[0].created_at)
    return max(0, now - since)
