"""What is old is deleted by a policy, on every store; a pass that is killed anywhere is taken up by the next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import scale
from tests.contract.kit import HERE, append, commit, event, finish, found, go, new, start
from tests.contract.test_deletion import killed_at
from tests.contract.test_retention import entry
from weft.core.ids import Millis, RunUid
from weft.ports.definitions import Definition
from weft.ports.retention import Cleared, EndedRun
from weft.ports.run_query import RunQuery
from weft.ports.store import Store
from weft.ports.streams import NewChunk
from weft.runtime import retention
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.duties.retention import RetentionDuty
from weft.runtime.retention import Collector, GcOrder, GcReport
from weft.runtime.retention_policy import RetentionPolicy, read_policy
from weft.runtime.run.append_extras import DEAD_LETTERS, FORKED_FROM
from weft.runtime.status import HostStatus
from weft.stores.memory import MemoryStore

DAY = 24 * 3600 * 1000
NOW = 100 * DAY


class FixedClock:
    """A clock that stands still."""

    def now_ms(self) -> Millis:
        return Millis(NOW)

    def monotonic(self) -> float:
        return 0.0


class SlowStoreClock(FixedClock):
    """A clock by which every write takes this long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += self._seconds
        return self._now


def over(store: Store, uid: str, days: int, status: str = "completed", **fields: Any) -> None:
    """Make a run that ended so many days ago."""
    start(store, uid, created_at=NOW - (days + 1) * DAY, **fields)
    finish(store, uid, status=status, events=[event(1, at=NOW - days * DAY)])


def collect(store: Store, policy: dict[str, Any], **fields: Any) -> GcReport:
    order = GcOrder(policy=read_policy(policy), by="ann", reason="old", **fields)
    return go(Collector(store, FixedClock()).collect(order))


def left(store: Store) -> set[str]:
    return {row.uid for row in go(store.directory.search(RunQuery(internal=True))).rows}


def test_each_status_has_its_age(store: Store) -> None:
    for status in ("completed", "failed", "cancelled"):
        for days in (5, 15, 25):
            over(store, f"{status}-{days}", days, status)
    start(store, "open", created_at=0)

    report = collect(store, {"completed": "10d", "failed": "20d"})

    assert (report.trees, report.runs, report.events) == (3, 3, 3)
    gone = {"completed-15", "completed-25", "failed-25"}
    assert left(store) == {f"{s}-{d}" for s in ("completed", "failed", "cancelled") for d in (5, 15, 25)} - gone | {
        "open"
    }
    (line,) = go(store.holds.audit())[-1:]
    assert (line.verb, line.by, line.reason) == ("gc", "ann", "old")
    assert sum(one.details["runs"] for one in go(store.holds.audit())) == 3


def test_nothing_goes_while_nothing_is_set(store: Store) -> None:
    over(store, "old", 90)

    assert collect(store, {}).trees == 0
    assert left(store) == {"old"}


def test_a_dry_run_only_counts(store: Store) -> None:
    over(store, "old", 90)

    report = collect(store, {"completed": "1d"}, dry_run=True)
    assert (report.trees, report.dry_run) == (1, True)
    assert left(store) == {"old"}
    assert go(store.holds.audit()) == []


def test_what_stays_has_a_reason(store: Store) -> None:
    over(store, "kept", 90)
    go(store.holds.add(RunUid("kept"), entry("kept", "keep")))
    over(store, "letters", 90, attributes={DEAD_LETTERS: True})
    over(store, "failed letters", 90, "failed", attributes={DEAD_LETTERS: True})
    over(store, "origin", 90)
    start(store, "fork", created_at=0, attributes={FORKED_FROM: "origin"})
    start(store, "parent", created_at=0)
    commit(store, append("parent", children=[new("child", parent="parent", created_at=0)]))
    finish(store, "parent", seq=1, events=[event(2, at=NOW - 90 * DAY)])

    report = collect(store, {"completed": "10d", "failed": "10d"})

    assert report.kept == {"kept": 1, "unsettled": 1, "open": 1, "named": 1}
    assert (report.trees, report.dead_letters) == (1, 1)
    assert left(store) == {"kept", "letters", "parent", "child", "origin", "fork"}
    finish(store, "child", events=[event(1, at=NOW - 3 * DAY)])
    assert collect(store, {"completed": "10d"}).kept["too_young"] == 1
    assert collect(store, {"completed": "2d"}).runs == 2


def test_the_last_runs_of_each_workflow_stay(store: Store) -> None:
    for days in (50, 60, 70):
        over(store, f"a{days}", days, workflow="a")
        over(store, f"b{days}", days, workflow="b")

    assert collect(store, {"completed": "1d", "keep_last": 2}).kept == {"keep_last": 4}
    assert left(store) == {"a50", "a60", "b50", "b60"}
    collect(store, {"completed": "1d", "keep_last": 1, "workflow": {"b": {"keep_last": 0}}})
    assert left(store) == {"a50"}


def test_a_person_is_erased_by_an_attribute_and_holds_win(store: Store) -> None:
    for number in range(3):
        over(store, f"r{number}", 0, attributes={"customer": 7 if number else 8})
    go(store.holds.add(RunUid("r2"), entry("r2", "keep")))
    start(store, "open", attributes={"customer": 7})

    report = collect(store, {"completed": "0s"}, where=RunQuery(where={"customer": 7}, internal=True))

    assert (report.trees, report.kept) == (1, {"kept": 1})
    assert left(store) == {"r0", "r2", "open"}


def test_output_goes_before_its_run(store: Store) -> None:
    for uid, days in (("old", 40), ("new", 20)):
        start(store, uid, created_at=0)
        go(store.streams.write([NewChunk(uid=RunUid(uid), stream="out", key="1", body=b"1", at=Millis(1))]))
        finish(store, uid, events=[event(1, at=NOW - days * DAY)])

    assert collect(store, {"streams": "30d", "completed": "90d"}).chunks == 1
    assert [go(store.streams.lengths(RunUid(uid))) for uid in ("old", "new")] == [{}, {"out": 1}]
    assert left(store) == {"old", "new"}


@pytest.mark.parametrize(
    "make", scale.first(3, ["sqlite", "postgres", "hot-memory", "memory", "hot-postgres"]), indirect=True
)
def test_a_pass_killed_anywhere_is_taken_up(store: Store, peer: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "ROWS_PER_WRITE", 3)
    number = 0
    while True:
        number += 1
        for run in range(3):
            over(store, f"old-{run}", 90)
        start(store, f"open-{number}", created_at=0)
        died = killed_at(number, lambda: collect(store, {"completed": "1d"}))
        # The next pass, on another host, ends what this one began.
        collect(peer, {"completed": "1d"})
        assert left(peer) == {f"open-{n}" for n in range(1, number + 1)}
        assert go(peer.retention.clear(limit=10)) == Cleared(0, 0)
        assert [found(peer, f"id of old-{run}") for run in range(3)] == [None] * 3
        recorded = go(peer.holds.audit(limit=1_000))
        assert sum(one.details["trees"] for one in recorded) == 3 * number, "each is recorded once, by who doomed it"
        if not died:
            break
    assert number > 6


def test_a_host_deletes_in_the_background_and_one_at_a_time(store: Store, peer: Store) -> None:
    over(store, "old", 90)
    policy = read_policy({"completed": "1d"})

    async def play(one: Store, host: Any, rules: RetentionPolicy) -> None:
        background = BackgroundTasks(HostStatus(), lambda _: True)
        background.start()
        duty = RetentionDuty(one, FixedClock(), host, background, rules)
        await duty.run()
        assert duty._pass is None  # a host that has just started has more urgent work
        await duty.run()
        assert duty._pass is not None
        await asyncio.wait_for(duty._pass, 200)

    go(store.retention.take_turn(HERE, now=Millis(NOW), lease_ms=10_000))
    go(play(peer, "other", policy))
    assert left(store) == {"old"}
    go(play(store, HERE, RetentionPolicy()))
    assert left(store) == {"old"}
    go(play(store, HERE, policy))
    assert left(store) == set()


@pytest.mark.parametrize(("seconds", "sizes"), [(0.5, [25, 12, 6, 5, 5, 5, 5, 5]), (0.0001, [25, 31, 12])])
def test_writes_get_smaller_while_they_are_slow_and_larger_while_they_are_not(seconds: float, sizes: list[int]) -> None:
    store = MemoryStore()
    for number in range(68):
        over(store, f"r{number}", 90)

    order = GcOrder(policy=read_policy({"completed": "1d"}))
    go(Collector(store, SlowStoreClock(seconds)).collect(order))

    assert [one.details["trees"] for one in reversed(go(store.holds.audit()))] == sizes
    assert left(store) == set()


def version(name: str, number: str, days: int) -> Definition:
    return Definition(name=name, version=number, style="graph", body=b"{}", created_at=Millis(NOW - days * DAY))


def test_versions_go_that_nothing_names_for_a_week(store: Store) -> None:
    for number, days in (("used", 30), ("young", 6), ("old", 8), ("hosted", 30)):
        go(store.definitions.put(version("order", number, days)))
    start(store, created_at=0, version="used")
    go(store.hosts.join(HERE, lease_ms=60_000, about={"versions": {"order": ["hosted"]}}))

    def names() -> list[str]:
        return [number for _, number in go(store.definitions.names("graph"))]

    assert collect(store, {"completed": "1d"}, dry_run=True).versions == 0
    assert collect(store, {}).versions == 1, "what is collected besides runs does not ask for ages"
    assert names() == ["hosted", "used", "young"]
    go(store.hosts.leave(HERE))
    collect(store, {"completed": "1d"})
    assert names() == ["used", "young"]


def test_a_tree_is_exported_before_it_goes_and_stays_if_that_fails(store: Store, peer: Store) -> None:
    """Killed anywhere, nothing is gone that was not exported."""
    number, saved = 0, set[str]()

    async def export(run: EndedRun) -> bool:
        saved.add(run.uid)
        return run.uid != "damaged"

    while True:
        number += 1
        for uid in ("one", "two"):
            if found(store, f"id of {uid}") is None:
                over(store, uid, 90)
        saved.clear()
        died = killed_at(number, lambda: collect(store, {"completed": "1d"}, export=export))
        go(peer.retention.clear(limit=500))
        assert {"one", "two"} - left(peer) <= saved
        if not died:
            break
    assert number > 4
    assert left(store) == set()
    over(store, "damaged", 90)
    over(store, "kept", 90)
    go(store.holds.add(RunUid("kept"), entry("kept", "keep")))
    saved.clear()
    report = collect(store, {"completed": "1d"}, export=export)
    assert (report.trees, report.kept) == (0, {"not_exported": 1, "kept": 1})
    assert (left(store), saved) == ({"damaged", "kept"}, {"damaged"})
    saved.clear()
    assert collect(store, {"completed": "1d"}, export=export, dry_run=True).trees == 1
    assert saved == set()


def test_a_host_says_once_a_day_how_fast_the_store_grows(caplog: pytest.LogCaptureFixture) -> None:
    store, now = MemoryStore(), NOW

    class Clock(FixedClock):
        def now_ms(self) -> Millis:
            return Millis(now)

    start(store, created_at=NOW - 1000)

    async def play() -> None:
        nonlocal now
        background = BackgroundTasks(HostStatus(), lambda _: True)
        background.start()
        duty = RetentionDuty(store, Clock(), HERE, background, RetentionPolicy())
        for hours in (0, 0, 1, 22, 24):
            now = NOW + hours * DAY // 24
            await duty.run()
            if duty._pass is not None:
                await asyncio.wait_for(duty._pass, 30)

    with caplog.at_level("INFO", "weft"):
        go(play())
    said = [line for line in caplog.messages if "[tool.weft.retention] is not set" in line]
    assert said == ["weft: 1 of 1 runs are of the last day. Nothing is deleted: [tool.weft.retention] is not set."]
