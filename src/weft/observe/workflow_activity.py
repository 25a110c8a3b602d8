"""What the runs of one version of a workflow did in the last day, in one picture."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec

from weft.cache import BoundedCache
from weft.core.ids import Millis
from weft.errors import NotFound, RunUnreadable
from weft.observe.box_standing import BoxStanding
from weft.observe.pictures import Arrow, Box, BoxGroup, Picture
from weft.observe.viewed_run import ViewedRun
from weft.ports.run_query import RunQuery
from weft.runtime.service import RunService

DAY_MS = 86_400_000
RUNS_MAX = 50
"""How many of the newest runs are read."""
EVENTS_MAX = 5_000
"""Runs with longer logs are left out, because reading them would take too long."""
READ_SECONDS_MAX = 2.0
KEPT_SECONDS = 30.0
KEPT_MAX = 100
SCAN = 20_000


class VersionActivity(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a version in one picture: how many places of each box stand how, and how often arrows were taken."""

    picture: Picture | None
    """What the runs recorded; None if there are none."""
    runs: int
    more: bool
    """Whether there were more runs, or some that are too long to be read."""
    boxes: dict[str, BoxStanding]
    arrows: dict[str, int]


class WorkflowActivity:
    """Reads what runs did, and keeps it for a while."""

    def __init__(self) -> None:
        self._kept: BoundedCache[tuple[str, str, str], tuple[float, VersionActivity]] = BoundedCache(KEPT_MAX)

    async def of(self, service: RunService, workflow: str, version: str) -> VersionActivity:
        """Return what the runs of a version did in the last day."""
        key, now = (service.tenant, workflow, version), asyncio.get_running_loop().time()
        kept = self._kept.get(key)
        if kept is not None and now - kept[0] < KEPT_SECONDS:
            return kept[1]
        found = await read_activity(service, workflow, version)
        self._kept.put(key, (now, found))
        return found


async def read_activity(service: RunService, workflow: str, version: str) -> VersionActivity:
    """Read what the newest runs of a version did, within limits of runs, events and time."""
    since = Millis(service.clock.now_ms() - DAY_MS)
    query = RunQuery(workflow=workflow, version=version, since=since, limit=RUNS_MAX, scan=SCAN)
    page = await service.search(query)
    more, runs = page.cursor is not None, 0
    boxes, arrows, pictures = dict[str, BoxStanding](), Counter[str](), list[Picture]()
    until = asyncio.get_running_loop().time() + READ_SECONDS_MAX
    for row in page.rows:
        if row.fault is not None or row.seq > EVENTS_MAX or asyncio.get_running_loop().time() > until:
            more = True
            continue
        viewed = ViewedRun()
        try:
            await viewed.refresh(service, row)
            standing = await viewed.standing(service, row, viewed.log.seq)
            picture = await viewed.picture(service, row, viewed.log.seq)
        except (RunUnreadable, NotFound):
            continue
        runs += 1
        for box, one in standing.boxes.items():
            boxes[box] = add_standings(boxes.get(box), one)
        arrows.update(standing.arrows)
        pictures += [picture] if picture is not None else []
    joined = join_pictures(workflow, pictures) if pictures else None
    shown = {box.id for box in joined.boxes} if joined is not None else set()
    stands = {box: one for box, one in boxes.items() if box in shown}
    return VersionActivity(picture=joined, runs=runs, more=more, boxes=stands, arrows=dict(arrows))


def add_standings(one: BoxStanding | None, older: BoxStanding) -> BoxStanding:
    """Return how a box stands in several runs. It is done if it was done in any of them, else as in the newest."""
    if one is None:
        return msgspec.structs.replace(older, mark="done" if older.done else older.mark, badges=[])
    done = one.done + older.done
    return BoxStanding(
        mark="done" if done else one.mark,
        open=one.open + older.open,
        done=done,
        failed=one.failed + older.failed,
        skipped=one.skipped + older.skipped,
        queued=one.queued + older.queued,
    )


def join_pictures(title: str, pictures: list[Picture]) -> Picture:
    """Return one picture with the boxes and arrows of several, without the state of any run."""
    boxes: dict[str, Box] = {}
    arrows: dict[str, Arrow] = {}
    groups: dict[str, BoxGroup] = {}
    for picture in pictures:
        for box in picture.boxes:
            boxes.setdefault(box.id, msgspec.structs.replace(box, mark="idle", times=0, badges=()))
        for arrow in picture.arrows:
            arrows.setdefault(arrow.id, msgspec.structs.replace(arrow, taken=False, times=0))
        for group in picture.groups:
            groups.setdefault(group.id, group)
    return Picture(title, tuple(boxes.values()), tuple(arrows.values()), groups=tuple(groups.values()))
