"""What screens hear about a run while it works: changed places, marks of boxes, its status and what it waits for.

All viewers of a run share its fold. The more a look at the run costs, the less often it is taken, so that viewers cost
a busy run little. What they see may then be behind, until the run rests or ends. A viewer gets at most ten frames per
second.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import msgspec

from weft.errors import NotFound, RunUnreadable
from weft.observe.as_of import as_of
from weft.observe.box_standing import BoxStanding
from weft.observe.cpu_pace import CpuPace
from weft.observe.cpu_time import CpuTime
from weft.observe.explain import explain
from weft.observe.explanation import Explanation
from weft.observe.place_rows import PlaceRow, row_of
from weft.observe.run_actions import RunActions, actions_of
from weft.observe.runs import live_machine, try_read_run
from weft.observe.viewed_run import Standing, ViewedRun, view_pace
from weft.ports.store import RunRow
from weft.server import views
from weft.server.endpoints.run_detail import allowed_to
from weft.server.endpoints.run_views import with_places
from weft.server.live.frames import Batches, Gap, LiveFrame, end_frame, gap_frame, problem_frame
from weft.server.problems import problem_of
from weft.server.request import ApiCall

KEEP_ALIVE_SECONDS = 15.0
PAUSE_SECONDS_MIN = 0.25
"""Between two looks, each of which gives up to two frames; and so long a run must not change to count as resting."""
RUN_SECONDS_MIN = 1.0
"""Between two frames about the run as a whole, of which there are two kinds, while it is busy."""
RUN_SECONDS_MAX = 60.0
RUN_SHARE_MAX = 0.002
"""The part of the time that they may take. It is small because reading a large run as a whole takes long."""
BEHIND_MS_MIN = 1_000
"""A viewer is told how far behind the run it is, if it is more than this."""
PLACES_MAX = 100
"""If more places have changed, the client is told that it has missed some. A screen asks for those that it shows."""
_encode = msgspec.json.Encoder().encode


class ChangedPlaces(msgspec.Struct, frozen=True):
    """Places that have begun or changed, and the numbers of those that are gone, because a retry or an edit dropped
    them.
    """

    seq: int
    places: list[PlaceRow]
    dropped: list[int]


class ChangedStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The boxes and arrows that stand otherwise than before. ``digest`` is that of the picture: if it is another one
    than before, the picture has changed.
    """

    seq: int
    at: views.Moment | None
    status: views.Status
    digest: str
    boxes: dict[str, BoxStanding]
    arrows: dict[str, int]
    removed: list[str]
    """The ids of boxes that are gone."""
    behind_ms: int = 0
    """How far this is behind the run, if the run is too busy to show everything at once; 0 below a second."""


class ChangedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run as a whole, and what the caller may do to it now."""

    seq: int
    status: views.Status
    updated_at: views.Moment
    ended_at: views.Moment | None
    actions: RunActions
    now: views.Moment


class LiveEnd(msgspec.Struct, frozen=True):
    """The run is over; this is the last frame."""

    status: str


class RunFrames(msgspec.Struct, frozen=True, kw_only=True):
    """The data of each kind of frame. A client gets them one by one, named by the event."""

    place: ChangedPlaces
    standing: ChangedStanding
    run: ChangedRun
    explain: Explanation
    gap: Gap
    """So many changed places were not sent: ask for them again."""
    end: LiveEnd


async def place_batches(call: ApiCall, row: RunRow, after: int | None) -> Batches:
    """Yield frames from now on, or what has changed since an event, until the run is over."""
    watch = RunWatch(call, row, after)
    with call.services.feed.follow(row.uid) as changed, call.services.viewed.watch(row):
        yield []
        while not call.services.closing.is_set():
            frames = await watch.look(changed)
            if frames:
                yield frames
            if watch.is_over:
                return
            if not watch.is_late and not await _wait_for(changed, KEEP_ALIVE_SECONDS):
                yield []
            await _wait_for_change(changed, watch.pace)


async def _wait_for_change(changed: asyncio.Event, pace: CpuPace) -> None:
    """Wait until the next look may be taken, or until the run has rested for a moment."""
    while True:
        changed.clear()
        await asyncio.sleep(PAUSE_SECONDS_MIN)
        if not changed.is_set() or pace.is_due():
            return


class RunWatch:
    """What one viewer has seen of a run."""

    def __init__(self, call: ApiCall, row: RunRow, after: int | None) -> None:
        self._call = call
        self._row = row
        self._after = after
        self._standing: Standing | None = None
        self._run_status = ""
        self._explained = b""
        self._run_seq = -1
        self._run_due = 0.0
        self._read_due = 0.0
        """When a busy run may be read from the store again."""
        self._actions: RunActions | None = None
        """What could last be done to the run."""
        self.pace = view_pace()
        """When the next look may be taken while the run is busy."""
        self._whole_cost = 0.0
        """The CPU seconds that the last look took for the run as a whole, which has a pace of its own."""
        self._begun = False
        self.is_over = False
        self._is_behind = False
        """Whether there are events that were left for a later look."""

    @property
    def is_late(self) -> bool:
        """Whether the viewer has not heard of the newest events, or of the newest state of the run as a whole."""
        return self._is_behind or (self._after is not None and self._run_seq < self._after)

    async def look(self, changed: asyncio.Event) -> list[LiveFrame]:
        """Return what is new. If the run changes all the time, it is busy, and a part is left for later."""
        was_busy, cost = changed.is_set(), CpuTime()
        changed.clear()
        self._whole_cost = 0.0
        frames = await cost.measure(self._look(lambda: was_busy or changed.is_set()))
        self.pace.spend(cost.seconds - self._whole_cost)
        return frames

    async def _look(self, is_busy: Callable[[], bool]) -> list[LiveFrame]:
        now = await self._call.service.store.directory.row(self._row.uid)
        if now is None:
            self.is_over = True
            return [end_frame("deleted")]
        as_of(self._call.service, now)  # let the host bring what this viewer wants to see next
        is_paced = self._begun and now.ended_at is None
        viewed, problem = await self._call.services.viewed.get_readable(
            self._call.service, now, is_busy=is_busy if is_paced else None
        )
        self._begun, self._is_behind = True, viewed.is_behind
        frames = await self._changes(viewed, now)
        if self._after is None or viewed.log.seq > self._after:
            self._after = viewed.log.seq
        is_last = now.ended_at is not None and now.seq <= viewed.log.seq
        if is_last or problem is not None or not is_busy() or time.monotonic() >= self._run_due:
            may_wait = is_busy() and not is_last and problem is None
            frames += await self._timed_whole(viewed, now, may_wait=may_wait)
        if problem is not None:
            frames.append(problem_frame(problem_of(problem)))
        elif is_last:
            frames.append(end_frame(now.status))
        self.is_over = is_last or problem is not None
        return frames

    async def _changes(self, viewed: ViewedRun, row: RunRow) -> list[LiveFrame]:
        """Return the changed places and boxes."""
        log, after = viewed.log, self._after
        seq = log.seq
        if not seq or (self._standing is not None and self._standing.seq == seq):
            return []
        frames: list[LiveFrame] = []
        if after is not None and after <= seq:
            changed = log.changed_since(after)
            if len(changed) > PLACES_MAX:
                frames.append(gap_frame(len(changed) - PLACES_MAX))
                changed = changed[-PLACES_MAX:]
            stand = [(place, place.standing(seq)) for place in changed]
            rows = [row_of(place, now) for place, now in stand if now is not None]
            if changed:
                gone = [place.number for place, now in stand if now is None]
                frames.append(LiveFrame("", "place", _encode(ChangedPlaces(seq, rows, gone))))
            if self._standing is None and after:
                self._standing = await viewed.standing(self._call.service, row, after)
        elif after is not None:
            frames.append(gap_frame(-1))
        frames.append(await self._standing_frame(viewed, row, seq))
        return frames

    async def _standing_frame(self, viewed: ViewedRun, row: RunRow, seq: int) -> LiveFrame:
        before = self._standing
        now = self._standing = await viewed.standing(self._call.service, row, seq)
        old_boxes, old_arrows = (before.boxes, before.arrows) if before is not None else ({}, {})
        view = ChangedStanding(
            seq=seq,
            at=views.api_time(now.at),
            status=now.status,  # type: ignore[arg-type]  # the status of a machine
            digest=await viewed.digest(self._call.service, row, seq),
            boxes={name: box for name, box in now.boxes.items() if old_boxes.get(name) != box},
            arrows={name: times for name, times in now.arrows.items() if old_arrows.get(name) != times},
            removed=[name for name in old_boxes if name not in now.boxes],
            behind_ms=_lag_ms(viewed, row),
        )
        return LiveFrame(str(seq), "standing", _encode(view))

    async def _timed_whole(self, viewed: ViewedRun, row: RunRow, *, may_wait: bool) -> list[LiveFrame]:
        cost = CpuTime()
        frames = await cost.measure(self._whole(viewed, row, may_wait=may_wait))
        self._whole_cost = cost.seconds
        pause = min(RUN_SECONDS_MAX, max(RUN_SECONDS_MIN, cost.seconds / RUN_SHARE_MAX))
        self._run_due = time.monotonic() + pause
        return frames

    async def _whole(self, viewed: ViewedRun, row: RunRow, *, may_wait: bool) -> list[LiveFrame]:
        """Return the run as a whole and its explanation, if they are new.

        If the run is busy here, its state has events that are not committed, and it can only be read from the store,
        which takes long. The explanation may then wait for a while.
        """
        if row.seq == self._run_seq and row.status == self._run_status:
            return []
        service = self._call.service
        actions = self._actions
        is_explained = actions is None or not (may_wait and self._is_ahead(row) and time.monotonic() < self._read_due)
        if actions is None or is_explained:
            machine, _ = await try_read_run(service, row)
            actions = await actions_of(service, row, machine.state if machine is not None and row.seq else None)
            self._actions, self._read_due = actions, time.monotonic() + RUN_SECONDS_MAX
        view = ChangedRun(
            seq=row.seq,
            status=row.status,  # type: ignore[arg-type]  # stores keep statuses as text
            updated_at=views.required_time(row.updated_at),
            ended_at=views.api_time(row.ended_at),
            actions=allowed_to(self._call.identity, actions),
            now=views.required_time(service.clock.now_ms()),
        )
        frames = [LiveFrame("", "run", _encode(view))]
        if is_explained:
            frames += await self._explanation(viewed, row)
            self._run_seq, self._run_status = row.seq, row.status
        return frames

    async def _explanation(self, viewed: ViewedRun, row: RunRow) -> list[LiveFrame]:
        with contextlib.suppress(NotFound, RunUnreadable):
            explained = _encode(with_places(await explain(self._call.service, row), viewed))
            if explained != self._explained:
                self._explained = explained
                return [LiveFrame("", "explain", explained)]
        return []

    def _is_ahead(self, row: RunRow) -> bool:
        """Return whether the run is performed here, and has events that are not committed yet."""
        service = self._call.service
        is_here = service.local is not None and service.local.find(row.uid) is not None
        return is_here and live_machine(service, row) is None


def _lag_ms(viewed: ViewedRun, row: RunRow) -> int:
    """Return how many milliseconds of the run are not shown yet; 0 if it is less than a second."""
    missing = row.updated_at - viewed.log.time_of(viewed.log.seq) if viewed.log.seq < row.seq else 0
    return missing if missing > BEHIND_MS_MIN else 0


async def _wait_for(changed: asyncio.Event, seconds: float) -> bool:
    """Wait for an event. Returns False if the time runs out first."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await changed.wait()
            return True
    return False
