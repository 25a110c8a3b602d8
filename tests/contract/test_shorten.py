"""Logs whose beginning was deleted: those of schedules, whose first event then holds the whole state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from tests.contract.kit import RUN, append, commit, go, load, release, rest, row, start
from tests.contract.test_deletion import killed_at
from tests.contract.test_gc import NOW, collect
from tests.contract.test_schedules import hosted
from weft.core import events as e
from weft.core.ids import Millis, RunId, Seq
from weft.core.schedule.calendar import STORED, WORKFLOW
from weft.core.schedule.machine import ScheduleMachine
from weft.core.schedule.state import ScheduleState, encode_state
from weft.core.schedule.style import CARRY_EVERY
from weft.errors import Refused
from weft.ports.store import Outcome, Snapshot, Store, StoredEvent
from weft.runtime import retention
from weft.runtime.bundles.service import BundleService
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.cron_calendar import CALENDAR
from weft.runtime.schedules import ScheduleService
from weft.runtime.service import RunService

SPEC = e.ScheduleSpec(workflow="job", input=msgspec.Raw(b"{}"), cron="0 0 1 1 *", overlap="allow")
FAR = 4_000_000_000_000
LENGTH = 2 * CARRY_EVERY + 300
CARRIED = (700, 1_700, 2_100)


def seqs(store: Store, after: int = 0, limit: int = 10_000) -> list[int]:
    return [one.seq for one in go(store.log.events(RUN, after=Seq(after), limit=limit))]


def shorten(store: Store, upto: int, limit: int = 500) -> int:
    return go(store.retention.shorten(RUN, upto, limit=limit))


def test_a_log_begins_where_it_was_cut(store: Store, peer: Store) -> None:
    start(store, count=10)
    other = append("other", count=3)
    assert shorten(store, 6, limit=100) == 6
    assert shorten(peer, 6) == shorten(peer, 4) == 0

    assert [one.seq for one in load(peer).events] == seqs(peer) == [7, 8, 9, 10]
    assert (seqs(peer, 8), seqs(peer, 3, 2), row(peer).seq) == ([9, 10], [7, 8], 10)
    assert commit(store, append(seq=10)) == [Outcome.ACCEPTED]
    assert [one.seq for one in load(store).events] == [7, 8, 9, 10, 11]
    assert go(store.retention.shorten(other.uid, 1, limit=5)) == 0


def test_it_is_cut_at_once_and_deleted_in_parts(store: Store) -> None:
    start(store, count=10)

    gone = [shorten(store, 8, limit=3) for _ in range(4)]
    assert sum(gone) == 8
    assert gone[-1] == 0
    assert [one.seq for one in load(store).events] == [9, 10]


def test_an_event_is_always_left(store: Store) -> None:
    start(store, count=4)

    assert shorten(store, 4) == shorten(store, 9) == 0
    assert seqs(store) == [1, 2, 3, 4]


def test_a_snapshot_from_before_the_cut_is_not_used(store: Store) -> None:
    start(store, count=10)
    go(store.log.release([release(seq=10, snapshot=Snapshot(Seq(5), 1, b"{}"))]))
    assert load(store).snapshot is not None

    shorten(store, 5)
    assert [one.seq for one in load(store).events] == [6, 7, 8, 9, 10]
    assert load(store).snapshot is not None
    shorten(store, 7)
    assert (load(store).snapshot, [one.seq for one in load(store).events]) == (None, [8, 9, 10])


def log_of_schedule() -> list[StoredEvent]:
    """A log as a schedule writes it: declared, fired and ended in turn, and carried from time to time."""
    machine = ScheduleMachine(CALENDAR, ScheduleState(uid=RUN))
    begin = e.RunStarted(
        run_id="schedule/tick", line=RUN, workflow=WORKFLOW, input=msgspec.Raw(b"{}"), style="schedule"
    )
    events = []
    for seq in range(1, LENGTH + 1):
        event: e.AnyEvent
        if seq <= 2:
            event = begin if seq == 1 else e.ScheduleDeclared(spec=SPEC, next=FAR)
        elif seq in CARRIED:
            event = e.ScheduleCarried(state=msgspec.Raw(encode_state(machine.state)))
        elif machine.state.open_runs:
            event = e.ScheduledRunEnded(uid=next(iter(machine.state.open_runs)), status="completed")
        else:
            event = e.ScheduleFired(run_id=f"r-{seq}", uid=f"u-{seq}", nominal=seq, next=FAR)
        machine.evolve(event, at=seq)
        events.append(StoredEvent(Seq(seq), Millis(seq), e.encode(event)))
    return events


def write(store: Store, events: list[StoredEvent]) -> None:
    fields = {"id": "schedule/tick", "workflow": WORKFLOW, "style": "schedule", "version": STORED, "created_at": NOW}
    start(store, count=0, **fields)
    for first in range(0, LENGTH, 500):
        commit(store, append(seq=first, events=events[first : first + 500]))


def test_a_host_goes_on_with_a_shorter_log(store: Store, make: Callable[[], Store]) -> None:
    write(store, log_of_schedule())
    rest(store, seq=LENGTH)
    collect(store, {"completed": "1d"})
    assert seqs(store)[0] == CARRIED[-2]

    async def play(schedules: ScheduleService, service: RunService) -> None:
        fired = (await schedules.get("tick")).fired
        run = await schedules.trigger("tick")
        assert (await service.ending(RunId(run), timeout=200)).status == "completed"
        assert (await schedules.get("tick")).fired == fired + 1

    asyncio.run(hosted(make, 1, play))


def test_a_schedule_is_the_same_with_a_shorter_log(store: Store, peer: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed anywhere, the next pass goes on."""
    monkeypatch.setattr(retention, "ROWS_PER_WRITE", 400)
    events = log_of_schedule()
    write(store, events)
    service = RunService(peer, SystemClock(), TimeIds())

    def state() -> bytes:
        return msgspec.json.encode(go(service.reader.state(go(service.row(RunId("schedule/tick"))))))

    before, number = state(), 0
    while killed_at(number := number + 1, lambda: collect(store, {"completed": "1d"})):
        assert state() == before, number
    assert number > 3
    assert (seqs(store)[0], seqs(store)[-1], state()) == (CARRIED[-2], LENGTH, before)
    with pytest.raises(Refused, match="beginning of its log"):
        go(BundleService(service).export("schedule/tick"))
