"""A run as screens show it, after any of its events: picture, standing, places.

One fold of the log serves everybody who looks at the run. It is extended by new events when somebody asks, and dropped
when nobody has asked for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import msgspec

from weft.cache import BoundedCache
from weft.core.machine import Machine
from weft.errors import Corrupt, LimitExceeded, RunUnreadable
from weft.observe.box_standing import BoxStanding
from weft.observe.cpu_pace import CpuPace
from weft.observe.cpu_time import CpuTime
from weft.observe.past_machines import PastMachines
from weft.observe.pictures import Picture
from weft.observe.pictures.drawn import DrawnPicture, draw, picture_digest
from weft.observe.place_log import PlaceLog
from weft.observe.run_moment import PictureDrawer, RunMoment
from weft.observe.runs import live_machine, try_read_run
from weft.observe.styles import views_of
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.runtime.unreadable import stored_page, undecodable_error

T = TypeVar("T")

IDLE_SECONDS = 60.0
PLACES_MAX = 200_000
LONG_RUN_EVENTS = 1_000
"""From so many events on, the newest machine of a run is kept for the next request."""
EVENTS_PER_TURN = 500
SHARE_MAX = 0.005
"""The largest part of the CPU time of the process that the viewers of a busy run may take on the loop. Reading its
events in a thread takes a quarter more."""
SHARE_OF_TIME = 0.002
"""What they may always take, as a part of the time: a process that is not busy uses little CPU time."""
TURN_SECONDS_MAX = 0.004
"""The CPU time after which further events of a busy run are left for later."""
PAUSE_SECONDS_MAX = 10.0
BOXES_MAX = 5_000
LAYOUTS_MAX = 200


def view_pace() -> CpuPace:
    """Return the pace at which a busy run is looked at."""
    return CpuPace(SHARE_MAX, SHARE_OF_TIME, PAUSE_SECONDS_MAX)


class Standing(msgspec.Struct, frozen=True):
    """How a run stood after an event: the marks of its boxes, and how often its arrows were taken."""

    seq: int
    at: int
    """The time of the event, in milliseconds since 1970."""
    status: str
    boxes: dict[str, BoxStanding]
    arrows: dict[str, int]


class _Seen(msgspec.Struct):
    """What was last shown of a run."""

    standing: Standing
    picture: Picture | None
    digest: str = ""


class ViewedRun:
    """The fold of one run for its viewers."""

    def __init__(self, machines: PastMachines | None = None) -> None:
        self.log = PlaceLog()
        self.used_at = 0.0
        self._machines = machines or PastMachines()
        self._reading = asyncio.Lock()
        self._newest: Machine | None = None
        self._reading_newest = asyncio.Lock()
        self._last: _Seen | None = None
        self._drawer: PictureDrawer | None = None
        self._pace = view_pace()
        """When more events of a busy run may be added."""
        self.is_behind = False
        """Whether events of a busy run were left for later."""

    @property
    def size(self) -> int:
        """How much is kept: places, and what the newest machine has of them."""
        return len(self.log.places) + (self._newest.state.seq // 2 if self._newest is not None else 0)

    async def refresh(self, service: RunService, row: RunRow, *, is_busy: Callable[[], bool] | None = None) -> None:
        """Add the events that were committed since the last call. Raises RunUnreadable.

        If ``is_busy`` is given, the run is watched, and while it is busy, this takes a small part of the CPU time and
        leaves the rest for later.
        """
        async with self._reading:
            if is_busy is not None and is_busy() and not self._pace.is_due():
                self.is_behind = True
                return
            cost = CpuTime()
            while not await cost.measure(self._add_page(service, row)):
                self.is_behind = is_busy is not None and cost.seconds > TURN_SECONDS_MAX and is_busy()
                if self.is_behind:
                    break
                await asyncio.sleep(0)  # a long log must not block the loop
            else:
                self.is_behind = False
            self._pace.spend(cost.seconds)

    async def _add_page(self, service: RunService, row: RunRow) -> bool:
        """Add the next events. Returns whether they were the last ones."""
        page, problem = await stored_page(service.store.log, row, after=self.log.seq, limit=EVENTS_PER_TURN)
        for stored in page:
            try:
                self.log.add(stored)
            except Corrupt as error:
                problem = undecodable_error(row, stored, error)
                break
        self.log.counts.advance(self.log.seq)
        self._drawer_of(row).add_places(self.log.places, len(self.log.drops), self.log.seq)
        if problem is not None:
            raise problem
        return len(page) < EVENTS_PER_TURN

    async def newest(self, service: RunService, row: RunRow) -> tuple[Machine | None, RunUnreadable | None]:
        """Return the machine of the run, or why it cannot be read, as ``try_read_run`` does. It must not be changed.

        What was read from the store serves as long as the run has no new event: reading a long run takes long.
        """
        async with self._reading_newest:
            live = live_machine(service, row)
            if live is not None:
                self._newest = None
                return live, None
            known = self._newest
            if known is None or row.fault is not None or known.state.seq != row.seq:
                known, problem = await try_read_run(service, row)
                if known is None:
                    return None, problem
                self._newest = known
            return known, None

    async def machine(self, service: RunService, row: RunRow, seq: int) -> Machine:
        """Return the machine of the run after an event. It must not be changed."""
        async with self._reading:
            return await self._machines.at(service, row, seq)

    async def around(
        self, service: RunService, row: RunRow, seq: int, read: Callable[[Machine], T]
    ) -> tuple[T | None, T]:
        """Return what ``read`` finds in the machine before and after an event; None before the first event."""
        async with self._reading:
            return await self._machines.around(service, row, seq, read)

    async def picture(self, service: RunService, row: RunRow, seq: int) -> Picture | None:
        """Return the picture of the run after an event; None before it has begun."""
        return (await self._seen(service, row, seq)).picture if seq else None

    async def standing(self, service: RunService, row: RunRow, seq: int) -> Standing:
        """Return how the run stood after an event."""
        return (await self._seen(service, row, seq)).standing

    async def digest(self, service: RunService, row: RunRow, seq: int) -> str:
        """Return the digest of the picture after an event; empty if there is none."""
        seen = await self._seen(service, row, seq)
        if not seen.digest and seen.picture is not None:
            seen.digest = picture_digest(seen.picture)
        return seen.digest

    async def _seen(self, service: RunService, row: RunRow, seq: int) -> _Seen:
        """Return the picture and the standing after an event. The last ones are kept for other viewers."""
        async with self._reading:
            if self._last is None or self._last.standing.seq != seq:
                now = live_machine(service, row) or self._newest if seq == self.log.seq else None
                if not views_of(row.style).draws_state:
                    self._last = self._look(row, None, seq)
                elif now is not None and now.state.seq == seq:
                    self._last = self._look(row, now, seq)
                else:
                    self._last = await self._machines.read(
                        service, row, seq, lambda machine: self._look(row, machine, seq)
                    )
            return self._last

    def _look(self, row: RunRow, machine: Machine | None, seq: int) -> _Seen:
        log = self.log
        log.counts.advance(log.seq)
        boxes = log.counts.standings(seq, log.places)
        picture = self._draw(row, machine, seq) if seq else None
        for box in picture.boxes if picture is not None else ():
            found = boxes.setdefault(box.id, BoxStanding())
            found.mark, found.badges = box.mark, list(box.badges)
        arrows = {arrow.id: arrow.times for arrow in picture.arrows if arrow.times} if picture is not None else {}
        status = machine.state.status if machine is not None else log.status_of(seq)
        return _Seen(Standing(seq, log.time_of(seq), status, boxes, arrows), picture)

    def _draw(self, row: RunRow, machine: Machine | None, seq: int) -> Picture | None:
        log = self.log
        moment = RunMoment(
            seq=seq,
            workflow=row.workflow,
            places=log.places,
            begun=log.begun(seq),
            drops=bisect_right(log.drops, seq),
            shown=log.counts.standings(seq, log.places, shown=True),
            taken=log.edges.until(seq),
        )
        return self._drawer_of(row).draw(machine, moment)

    def _drawer_of(self, row: RunRow) -> PictureDrawer:
        if self._drawer is None:
            self._drawer = views_of(row.style).drawer()
        return self._drawer


class ViewedRuns:
    """The folds of the runs that somebody looks at, within a limit of places."""

    def __init__(self) -> None:
        self._runs: dict[str, ViewedRun] = {}
        self._watchers: Counter[str] = Counter()
        self._layouts: BoundedCache[str, DrawnPicture] = BoundedCache(LAYOUTS_MAX)

    async def get(self, service: RunService, row: RunRow, *, is_busy: Callable[[], bool] | None = None) -> ViewedRun:
        """Return the fold of a run, as of now. Raises RunUnreadable. For ``is_busy``, see ``ViewedRun.refresh``."""
        found = self._used(row)
        await found.refresh(service, row, is_busy=is_busy)
        return found

    async def get_until(self, service: RunService, row: RunRow, seq: int | None) -> ViewedRun:
        """Return the fold of a run at least up to an event, or without one, as of now.

        If somebody watches the run and it is too busy to show everything, the fold ends with what they see. Raises
        RunUnreadable.
        """
        found = self._used(row)
        is_enough = found.is_behind and row.uid in self._watchers and (seq or 0) <= found.log.seq
        if not is_enough or row.ended_at is not None:
            await found.refresh(service, row)
        return found

    async def newest(self, service: RunService, row: RunRow) -> tuple[Machine | None, RunUnreadable | None]:
        """Return the machine of a run, or why it cannot be read, as ``try_read_run`` does. It must not be changed.

        That of a long run is kept while somebody looks at it. Raises NotFound.
        """
        if row.seq < LONG_RUN_EVENTS:
            return await try_read_run(service, row)
        return await self._used(row).newest(service, row)

    @contextlib.contextmanager
    def watch(self, row: RunRow) -> Iterator[None]:
        """Say that somebody watches a run as long as the block lasts, and refreshes its fold again and again."""
        self._watchers[row.uid] += 1
        try:
            yield
        finally:
            self._watchers[row.uid] -= 1
            if not self._watchers[row.uid]:
                del self._watchers[row.uid]

    def _used(self, row: RunRow) -> ViewedRun:
        now = asyncio.get_running_loop().time()
        found = self._runs.setdefault(row.uid, ViewedRun())
        found.used_at = now
        self._drop(now, row.uid)
        return found

    async def get_readable(
        self, service: RunService, row: RunRow, *, is_busy: Callable[[], bool] | None = None
    ) -> tuple[ViewedRun, RunUnreadable | None]:
        """Return the fold of a run as far as its log can be read, and the error about the next event, if any."""
        return await self._readable(row, self.get(service, row, is_busy=is_busy))

    async def get_readable_until(
        self, service: RunService, row: RunRow, seq: int | None
    ) -> tuple[ViewedRun, RunUnreadable | None]:
        """Return the fold of a run as ``get_until`` does, as far as its log can be read, and the error, if any."""
        return await self._readable(row, self.get_until(service, row, seq))

    async def _readable(self, row: RunRow, got: Awaitable[ViewedRun]) -> tuple[ViewedRun, RunUnreadable | None]:
        try:
            return await got, None
        except RunUnreadable as problem:
            return self._runs.setdefault(row.uid, ViewedRun()), problem

    async def drawn(self, picture: Picture) -> DrawnPicture:
        """Lay a picture out in a thread, once per digest. Raises LimitExceeded."""
        boxes = sum(box.shape != "start" or bool(box.title) for box in picture.boxes)  # the dot at the start is no box
        if boxes > BOXES_MAX:
            raise LimitExceeded(
                f"The picture has {boxes:,} boxes; at most {BOXES_MAX:,} are drawn.",
                hint="List its places instead.",
            )
        digest = picture_digest(picture)
        known = self._layouts.get(digest)
        if known is None:
            known = await asyncio.to_thread(draw, picture)
            self._layouts.put(digest, known)
        return known

    def _drop(self, now: float, kept: str) -> None:
        """Drop folds that nobody uses, and the longest unused ones if there are too many places."""
        for uid in [uid for uid, run in self._runs.items() if now - run.used_at > IDLE_SECONDS]:
            del self._runs[uid]
        while len(self._runs) > 1 and sum(run.size for run in self._runs.values()) > PLACES_MAX:
            oldest = min((uid for uid in self._runs if uid != kept), key=lambda uid: self._runs[uid].used_at)
            del self._runs[oldest]
