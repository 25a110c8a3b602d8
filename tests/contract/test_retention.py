"""Deleting runs on every store: a doomed run is not found, its id stays taken, and a deletion goes on after a crash."""

from typing import Any

import pytest

from tests.contract.kit import (
    HERE,
    OTHER,
    RUN,
    THERE,
    append,
    claim,
    commit,
    create,
    event,
    finish,
    found,
    go,
    load,
    mail,
    new,
    row,
    send,
    start,
)
from weft.core.ids import Epoch, Millis, RunId, RunUid, Seq
from weft.errors import NotFound
from weft.ports.retention import AuditEntry, Cleared, DoomResult, DoomRule, EndedQuery
from weft.ports.run_query import RunQuery
from weft.ports.step_logs import LogBatch, LogLimits, LogQuery, LogTotals, NewLine
from weft.ports.store import KeyRow, Outcome, Snapshot, Store
from weft.ports.streams import NewChunk
from weft.ports.tasks import TaskOffer

ANYHOW = DoomRule()
DAY = 24 * 3600 * 1000


def entry(uid: str = RUN, verb: str = "delete", **fields: Any) -> AuditEntry:
    values: dict[str, Any] = {"run": f"id of {uid}", "workflow": "order", "by": "ann", "reason": "asked", "at": 9_000}
    return AuditEntry(verb=verb, uid=RunUid(uid), **(values | fields))


def doom(store: Store, uid: str = RUN, rule: DoomRule = ANYHOW) -> DoomResult:
    return go(store.retention.doom(RunUid(uid), rule, entry(uid)))


def clear(store: Store, limit: int = 500) -> Cleared:
    return go(store.retention.clear(limit=limit))


def ended(store: Store, uid: str = RUN, **fields: Any) -> None:
    start(store, uid, **fields)
    finish(store, uid)


def full(store: Store, uid: str = RUN) -> str:
    """Make a run that is over and has a row in every table. Returns the digest of its blob."""
    digest = go(store.blobs.put(b"large"))
    start(store, uid, attributes={"customer": 7})
    task = TaskOffer(uid=RunUid(uid), task=1, attempt=1, delivery=1, step="s", queue="q", body=b"{}", epoch=Epoch(1))
    go(store.tasks.offer([task]))
    go(
        store.streams.write(
            [NewChunk(uid=RunUid(uid), stream="out", key=f"{n}", body=b"1", at=Millis(1)) for n in range(3)]
        )
    )
    printed = [
        NewLine(uid=RunUid(uid), at=Millis(1), place="s", attempt=1, level=20, source="stdout", text=f"{n}")
        for n in range(3)
    ]
    go(store.step_logs.write(LogBatch(host=HERE, number=1, lines=printed), LogLimits()))
    send(store, mail(to=uid, key="k1", digest="d"))
    extras: dict[str, Any] = {
        "refs": [digest],
        "keys": [KeyRow("k2", "d", Seq(1))],
        "snapshot": Snapshot(Seq(3), 1, b"{}"),
        "attributes": {"late": True},
    }
    assert commit(store, append(uid, count=3, **extras)) == [Outcome.ACCEPTED]
    finish(store, uid, seq=3, taken=["m1"], mail_taken=1)
    return digest


def statuses(store: Store, **fields: Any) -> list[str]:
    return [one.id for one in go(store.directory.search(RunQuery(**fields))).rows]


# --- dooming -----------------------------------------------------------------------------------------------------


def test_a_doomed_run_is_not_found_by_anything(store: Store, peer: Store) -> None:
    full(store)

    assert doom(store).outcome == "doomed"
    for one in (store, peer):
        assert found(one, "id of run-1") is None
        assert go(one.directory.row(RUN)) is None
        assert go(one.directory.key(RUN, "k2")) is None
        assert go(one.log.load(RUN, fold=1)) is None
        assert list(go(one.log.events(RUN, after=Seq(0), limit=10))) == []
        assert list(go(one.log.inbox(RUN))) == []
        assert go(one.streams.lengths(RUN)) == {}
        assert list(go(one.streams.read(RUN, "out", after=0, limit=10))) == []
        assert list(go(one.step_logs.read(RUN, LogQuery()))) == []
        assert go(one.step_logs.totals(RUN)) == LogTotals()
        assert statuses(one) == statuses(one, status="completed") == statuses(one, where={"customer": 7}) == []
        assert statuses(one, workflow="order") == statuses(one, id_prefix="id") == []
        assert go(one.directory.counts()) == {}
        assert go(one.retention.is_doomed(RunId("id of run-1")))
        assert go(one.retention.ended(EndedQuery(status="completed", ended_before=Millis(DAY)))).runs == []


def test_a_doomed_run_takes_nothing(store: Store) -> None:
    ended(store)
    doom(store)

    assert send(store, mail()) == ["unknown_run"]
    addressed = go(store.inboxes.send_to(RunId("id of run-1"), mail("m2")))
    assert (addressed.row, addressed.sent) == (None, None)
    assert claim(store, epoch=1) == []
    assert commit(store, append(seq=1)) == [Outcome.STALE_EPOCH]
    assert commit(store, append(seq=1, reopen=Millis(5), status="completed")) == [Outcome.STALE_EPOCH]
    assert not go(store.holds.add(RUN, entry(verb="keep")))


def test_the_id_of_a_doomed_run_stays_taken_until_its_row_is_gone(store: Store, peer: Store) -> None:
    full(store)
    doom(store)
    again = new(OTHER, id="id of run-1", owner=None)

    assert create(peer, again) == [Outcome.ID_TAKEN]
    assert commit(peer, append(OTHER, create=new(OTHER, id="id of run-1"))) == [Outcome.ID_TAKEN]
    while not clear(store, 3).runs:
        assert go(peer.retention.is_doomed(RunId("id of run-1")))
        assert create(peer, again) == [Outcome.ID_TAKEN]
    assert not go(peer.retention.is_doomed(RunId("id of run-1")))
    assert create(peer, again) == [Outcome.ACCEPTED]
    assert row(peer, OTHER).id == "id of run-1"


def test_a_child_does_not_get_the_id_of_a_doomed_run(store: Store) -> None:
    ended(store)
    doom(store)
    start(store, "parent")

    child = new(OTHER, id="id of run-1", owner=None, parent="parent", start=b"{}")
    assert commit(store, append("parent", children=[child])) == [Outcome.ACCEPTED]
    assert row(store, OTHER).id == "id of run-1~run-2"


def test_an_unknown_run_is_not_doomed(store: Store) -> None:
    assert doom(store).outcome == "unknown_run"
    ended(store)
    doom(store)
    assert doom(store).outcome == "unknown_run"
    assert len(go(store.holds.audit())) == 1


@pytest.mark.parametrize("status", ["running", "paused", "held", "cancelling"])
def test_an_open_run_is_not_doomed(store: Store, status: str) -> None:
    start(store)
    commit(store, append(status=status))

    assert (doom(store).outcome, doom(store).run) == ("open", "id of run-1")
    assert row(store).status == status


def test_a_tree_goes_as_a_whole(store: Store) -> None:
    start(store)
    children = [new(uid, owner=None, parent=RUN, start=b"{}") for uid in ("c1", "c2")]
    commit(store, append(children=children))
    finish(store, seq=1)
    (claimed,) = claim(store, "c1")
    commit(store, append("c1", children=[new("c3", owner=HERE, parent="c1")]))
    finish(store, "c1", seq=1, epoch=claimed.epoch, taken=["start"], mail_taken=1)

    assert (doom(store).outcome, doom(store, "c1").outcome) == ("open", "not_root")
    for uid, taken in (("c2", ["start"]), ("c3", [])):
        if taken:
            claim(store, uid)
        finish(store, uid, taken=taken, mail_taken=len(taken))
    result = doom(store)

    assert (result.outcome, result.runs, result.events) == ("doomed", 4, 6)
    assert statuses(store) == []
    while clear(store) != Cleared(0, 0):
        pass
    assert create(store, *children) == [Outcome.ACCEPTED] * 2


def test_age_counts_from_the_end_of_the_last_run_of_the_tree(store: Store) -> None:
    start(store)
    commit(store, append(children=[new(OTHER, parent=RUN)]))
    finish(store, seq=1, events=[event(2, at=5_000)])
    finish(store, OTHER, events=[event(1, at=8_000)])

    young = doom(store, rule=DoomRule(ended_before=Millis(7_999)))
    assert (young.outcome, young.run) == ("too_young", "id of run-2")
    assert doom(store, rule=DoomRule(ended_before=Millis(8_000))).outcome == "doomed"


@pytest.mark.parametrize(
    ("status", "settled", "outcome"),
    [("completed", True, "unsettled"), ("completed", False, "doomed"), ("failed", True, "doomed")],
)
def test_dead_letters_of_completed_runs_keep_a_tree(store: Store, status: str, settled: bool, outcome: str) -> None:
    start(store, attributes={"letters": True})
    finish(store, status=status)

    result = doom(store, rule=DoomRule(unsettled="letters", settled=settled))
    assert result.outcome == outcome
    if outcome == "doomed":
        assert go(store.holds.audit())[0].details == {"runs": 1, "events": 1, "dead_letters": 1}


# --- clearing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 7, 500])
def test_clearing_goes_on_from_wherever_it_stopped(store: Store, peer: Store, limit: int) -> None:
    full(store)
    full(store, OTHER)
    doom(store)
    calls = 0
    while (gone := clear(store if calls % 2 else peer, limit)) != Cleared(0, 0):
        assert gone.rows <= limit
        calls += 1
        assert load(store, OTHER).row.seq == 4
    assert calls >= 10 // limit
    assert len(load(store, OTHER).events) == 1  # after the snapshot
    assert go(store.streams.lengths(OTHER)) == {"out": 3}
    assert go(store.directory.key(OTHER, "k2")) is not None
    assert statuses(store, where={"customer": 7}) == ["id of run-2"]


def test_a_run_that_takes_a_freed_id_has_nothing_of_the_old_one(store: Store) -> None:
    full(store)
    doom(store)
    while clear(store) != Cleared(0, 0):
        pass
    start(store, OTHER, id="id of run-1", count=1)

    assert [one.seq for one in load(store, OTHER).events] == [1]
    assert load(store, OTHER).snapshot is None
    assert go(store.streams.lengths(OTHER)) == {}
    assert go(store.directory.key(OTHER, "k2")) is None
    assert go(store.tasks.rows(OTHER)) == []
    assert statuses(store, where={"customer": 7}) == []
    assert commit(store, append(seq=4, epoch=1)) == [Outcome.STALE_EPOCH]


def test_the_blobs_of_a_deleted_run_are_swept_later(store: Store) -> None:
    digest = full(store)
    full(store, OTHER)
    doom(store)
    while clear(store) != Cleared(0, 0):
        pass
    go(store.blobs.sweep(now=Millis(0), untouched_ms=DAY))

    assert go(store.blobs.sweep(now=Millis(DAY), untouched_ms=DAY)) == 0
    doom(store, OTHER)
    while clear(store) != Cleared(0, 0):
        pass
    assert go(store.blobs.sweep(now=Millis(DAY), untouched_ms=DAY)) == 1
    with pytest.raises(NotFound):
        go(store.blobs.get(digest))


def test_nothing_is_cleared_while_nothing_is_doomed(store: Store) -> None:
    full(store)

    assert clear(store) == Cleared(0, 0)
    assert load(store).row.status == "completed"


# --- holds and the audit table -----------------------------------------------------------------------------------


def test_a_hold_keeps_a_tree(store: Store, peer: Store) -> None:
    ended(store)

    assert go(store.holds.add(RUN, entry(verb="keep", reason="a court")))
    assert not go(peer.holds.add(RUN, entry(verb="keep")))
    assert (doom(peer).outcome, doom(peer).run) == ("kept", "id of run-1")
    assert {uid: hold.reason for uid, hold in go(peer.holds.find([RUN, OTHER])).items()} == {RUN: "a court"}
    assert go(peer.holds.end(RUN, entry(verb="keep_end")))
    assert not go(store.holds.end(RUN, entry(verb="keep_end")))
    assert doom(store).outcome == "doomed"
    assert [one.verb for one in go(peer.holds.audit())] == ["delete", "keep_end", "keep"]


def test_the_audit_table_says_who_why_and_how_much(store: Store) -> None:
    full(store)
    ended(store, OTHER)
    doom(store)
    doom(store, OTHER)
    clear(store)

    (first,) = go(store.holds.audit(run=RunId("id of run-1")))
    assert first == entry(details={"runs": 1, "events": 4, "dead_letters": 0}, number=first.number)
    assert [one.uid for one in go(store.holds.audit())] == [OTHER, RUN]
    assert [one.uid for one in go(store.holds.audit(limit=1))] == [OTHER]
    assert [one.uid for one in go(store.holds.audit(before=first.number + 1))] == [RUN]


# --- what is old -------------------------------------------------------------------------------------------------


def test_roots_that_are_over_are_found_oldest_first(store: Store) -> None:
    for number, (uid, fields) in enumerate(
        {
            "a": {"workflow": "order"},
            "b": {"workflow": "bill"},
            "c": {"parent": RunUid("a")},
            "d": {"id": "@acme/d"},
            "e": {},
        }.items()
    ):
        start(store, uid, created_at=1_000 + number, **fields)
        finish(store, uid, status="failed" if uid == "e" else "completed", events=[event(1, at=2_000 + number)])
    start(store, "open")

    def old(**fields: Any) -> list[str]:
        query = EndedQuery(**({"status": "completed", "ended_before": Millis(5_000)} | fields))
        return [run.uid for run in go(store.retention.ended(query)).runs]

    assert old() == ["a", "b", "d"]
    assert old(ended_before=Millis(2_001)) == ["a", "b"]
    assert old(status="failed") == ["e"]
    assert old(workflow="bill") == ["b"]
    assert old(without=["bill"]) == ["a", "d"]
    assert old(id_prefix="@acme/") == ["d"]
    first = go(store.retention.ended(EndedQuery(status="completed", ended_before=Millis(5_000), limit=2)))
    assert [run.uid for run in first.runs] == ["a", "b"]
    assert (first.runs[0].id, first.runs[0].ended_at) == ("id of a", 2_000)
    assert old(after=first.cursor) == ["d"]


def test_the_output_of_old_runs_is_cleared(store: Store) -> None:
    for uid, at in ((RUN, 3_000), (OTHER, 4_000)):
        start(store, uid)
        go(store.streams.write([NewChunk(uid=RunUid(uid), stream="out", key="1", body=b"1", at=Millis(1))]))
        finish(store, uid, events=[event(1, at=at)])
    start(store, "open")
    go(store.streams.write([NewChunk(uid=RunUid("open"), stream="out", key="1", body=b"1", at=Millis(1))]))

    assert go(store.retention.clear_streams(ended_before=Millis(3_000), limit=100)) == 1
    assert go(store.retention.clear_streams(ended_before=Millis(3_000), limit=100)) == 0
    assert [go(store.streams.lengths(RunUid(uid))) for uid in (RUN, OTHER, "open")] == [{}, {"out": 1}, {"out": 1}]
    assert load(store).row.status == "completed"


def test_one_host_at_a_time_has_its_turn(store: Store, peer: Store) -> None:
    def turn(one: Store, host: Any, now: int) -> bool:
        return go(one.retention.take_turn(host, now=Millis(now), lease_ms=100))

    assert (turn(store, HERE, 0), turn(peer, THERE, 50), turn(store, HERE, 60)) == (True, False, True)
    assert (turn(peer, THERE, 159), turn(peer, THERE, 160), turn(store, HERE, 200)) == (False, True, False)


def test_the_size_of_a_store(store: Store) -> None:
    start(store, RUN, created_at=1_000)
    start(store, OTHER, created_at=2_000)

    size = go(store.retention.size(since=Millis(2_000)))
    assert (size.runs, size.recent) == (2, 1)
    assert size.size_bytes is None or size.size_bytes > 4096
