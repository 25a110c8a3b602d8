"""What is old is deleted by a policy, on every store; a pass that is killed anywhere is taken up by the next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.kit import HERE, append, commit, event, finish, found, go, new, start
from tests.contract.test_deletion import killed_at
from tests.contract.test_retention import entry
from weft.core.ids import Millis, RunUid
from weft.ports.retention import Cleared
from weft.ports.store import RunQuery, Store
from weft.ports.streams import NewChunk
from weft.runtime import retention
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.duties.retention import RetentionDuty
from weft.runtime.retention import Collector, GcOrder, GcReport
from weft.runtime.retention_policy import RetentionPolicy, read_policy
from weft.runtime.run.append_extras import DEAD_LETTERS, FORKED_FROM
from weft.runtime.status import HostStatus

DAY = 24 * 3600 * 1000
NOW = 100 * DAY


class FixedClock:
    """A clock that stands still."""

    def now_ms(self) -> Millis:
        return Millis(NOW)

    def monotonic(self) -> float:
        return 0.0


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
