"""A run as screens show it, after any of its events: picture, standing, places.

One fold of the log serves everybody who looks at the run. It is extended by new events when somebody asks, and dropped
when nobody has asked for a while.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec

from weft.cache import BoundedCache
from weft.core.decider import Machine
from weft.errors import LimitExceeded
from weft.observe.box_standing import BoxStanding, standings_of
from weft.observe.past_machines import PastMachines
from weft.observe.pictures import Picture
from weft.observe.pictures.drawn import DrawnPicture, digest_of, draw
from weft.observe.place_log import PlaceLog
from weft.observe.styles import views_of
from weft.ports.store import RunRow
from weft.runtime.service import RunService

IDLE_SECONDS = 60.0
PLACES_MAX = 200_000
EVENTS_PER_TURN = 500
BOXES_MAX = 5_000
LAYOUTS_MAX = 200


class Standing(msgspec.Struct, frozen=True):
    """How a run stood after an event: the marks of its boxes, and how often its arrows were taken."""

    seq: int
    at: int
    """The time of the event, in milliseconds since 1970."""
    status: str
    boxes: dict[str, BoxStanding]
    arrows: dict[str, int]


class ViewedRun:
    """The fold of one run for its viewers."""

    def __init__(self, machines: PastMachines | None = None) -> None:
        self.log = PlaceLog()
        self.used_at = 0.0
        self._machines = machines or PastMachines()
        self._reading = asyncio.Lock()

    async def refresh(self, service: RunService, row: RunRow) -> None:
        """Add the events that were committed since the last call. Raises RunUnreadable."""
        async with self._reading:
            async for stored in service.reader.events(row, after=self.log.seq):
                self.log.add(stored)
                if not stored.seq % EVENTS_PER_TURN:
                    await asyncio.sleep(0)  # a long log must not block the loop

    async def machine(self, service: RunService, row: RunRow, seq: int) -> Machine:
        """Return the machine of the run after an event. It must not be changed."""
        async with self._reading:
            return await self._machines.at(service, row, seq)

    async def picture(self, service: RunService, row: RunRow, seq: int) -> Picture | None:
        """Return the picture of the run after an event; None before it has begun."""
        if not seq:
            return None
        machine = await self.machine(service, row, seq)
        taken = Counter(edge for number, edge in self.log.edges if number <= seq)
        return views_of(row.style).picture_of(machine, self.log.until(seq), taken)

    async def standing(self, service: RunService, row: RunRow, seq: int) -> Standing:
        """Return how the run stood after an event."""
        machine = await self.machine(service, row, seq)
        taken = Counter(edge for number, edge in self.log.edges if number <= seq)
        picture = views_of(row.style).picture_of(machine, self.log.until(seq), taken)
        boxes = standings_of(self.log.until(seq), seq)
        for box in picture.boxes if picture is not None else ():
            found = boxes.setdefault(box.id, BoxStanding())
            found.mark, found.badges = box.mark, list(box.badges)
        arrows = {arrow.id: arrow.times for arrow in picture.arrows if arrow.times} if picture is not None else {}
        return Standing(seq, self.log.time_of(seq), machine.state.status, boxes, arrows)


class ViewedRuns:
    """The folds of the runs that somebody looks at, within a limit of places."""

    def __init__(self) -> None:
        self._runs: dict[str, ViewedRun] = {}
        self._layouts: BoundedCache[str, DrawnPicture] = BoundedCache(LAYOUTS_MAX)

    async def get(self, service: RunService, row: RunRow) -> ViewedRun:
        """Return the fold of a run, as of now. Raises RunUnreadable."""
        now = asyncio.get_running_loop().time()
        found = self._runs.setdefault(row.uid, ViewedRun())
        found.used_at = now
        self._drop(now, row.uid)
        await found.refresh(service, row)
        return found

    async def drawn(self, picture: Picture) -> DrawnPicture:
        """Lay a picture out in a thread, once per digest. Raises LimitExceeded."""
        if len(picture.boxes) > BOXES_MAX:
            raise LimitExceeded(
                f"The picture has {len(picture.boxes):,} boxes; at most {BOXES_MAX:,} are drawn.",
                hint="List its places instead.",
            )
        digest = digest_of(picture)
        known = self._layouts.get(digest)
        if known is None:
            known = await asyncio.to_thread(draw, picture)
            self._layouts.put(digest, known)
        return known

    def _drop(self, now: float, kept: str) -> None:
        """Drop folds that nobody uses, and the longest unused ones if there are too many places."""
        for uid in [uid for uid, run in self._runs.items() if now - run.used_at > IDLE_SECONDS]:
            del self._runs[uid]
        while len(self._runs) > 1 and sum(len(run.log.places) for run in self._runs.values()) > PLACES_MAX:
            oldest = min((uid for uid in self._runs if uid != kept), key=lambda uid: self._runs[uid].used_at)
            del self._runs[oldest]
