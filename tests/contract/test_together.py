"""Appends to several runs that are written all or none: a tree that moves to another store, and one that comes."""

from typing import Any

import msgspec
import pytest

from tests.contract.kit import (
    FLOW,
    HERE,
    NOBODY,
    OTHER,
    RUN,
    append,
    claim,
    commit,
    found,
    go,
    inbox,
    load,
    mail,
    new,
    rest,
    row,
    send,
    start,
)
from weft.core.ids import Millis, Seq
from weft.ports.retention import AuditEntry
from weft.ports.store import Append, KeyRow, Outcome, Sent, Store

NOW = 9_000


def together(store: Store, *batch: Append) -> list[Outcome]:
    return list(go(store.log.write_together(batch)))


def moved(uid: str = RUN, **fields: Any) -> Append:
    return append(uid, **({"seq": 2, "status": "moved", "attributes": {"to": "there"}} | fields))


def test_all_runs_end_whoever_owns_them(store: Store, peer: Store) -> None:
    start(store, count=2)
    start(store, OTHER, count=2, owner="there")
    rest(store, OTHER, seq=2)

    assert together(peer, moved(), moved(OTHER)) == [Outcome.ACCEPTED] * 2
    for uid in (RUN, OTHER):
        there = row(store, uid)
        assert (there.status, there.seq, there.owner, there.wake_at) == ("moved", 3, None, None)
        assert (there.ended_at, there.attributes) == (2_003, {"to": "there"})
        assert len(load(store, uid).events) == 3
        assert send(store, mail(to=uid)) == [Sent.OVER]
    assert commit(store, append(seq=2)) == [Outcome.STALE_EPOCH], "the owner has lost it"
    assert not go(store.directory.claimable([FLOW], dead=[HERE], now=Millis(10**9), limit=9))


@pytest.mark.parametrize(
    ("wrong", "outcome"),
    [
        ({"seq": 1}, Outcome.STALE_SEQ),
        ({"epoch": 2}, Outcome.STALE_EPOCH),
        ({"mail_taken": 1}, Outcome.MAIL_WAITING),
        ({"uid": NOBODY}, Outcome.STALE_EPOCH),
    ],
)
def test_one_that_is_refused_stops_all(store: Store, wrong: dict[str, Any], outcome: Outcome) -> None:
    start(store, count=2)
    start(store, OTHER, count=2)
    options = {"uid": OTHER} | wrong

    assert together(store, moved(), moved(**options)) == [Outcome.ACCEPTED, outcome]
    assert [(row(store, uid).status, row(store, uid).seq) for uid in (RUN, OTHER)] == [("running", 2)] * 2


def test_mail_that_came_meanwhile_stops_it_and_is_not_lost(store: Store) -> None:
    start(store, count=2)
    send(store, mail())

    assert together(store, moved()) == [Outcome.MAIL_WAITING]
    assert inbox(store) == ["m1"]
    assert commit(store, append(seq=2, taken=["m1"])) == [Outcome.ACCEPTED]
    assert together(store, moved(seq=3, mail_taken=1)) == [Outcome.ACCEPTED]


def test_one_that_is_over_does_not_end_again(store: Store) -> None:
    start(store, count=2)
    assert together(store, moved()) == [Outcome.ACCEPTED]

    assert together(store, moved(seq=3)) == [Outcome.STALE_SEQ]


def test_mail_goes_with_it(store: Store) -> None:
    start(store, count=2)
    start(store, OTHER, count=2)

    together(store, moved(mail=[mail("told", to=OTHER)]))
    assert inbox(store, OTHER) == ["told"]


@pytest.mark.parametrize("before", ["moved", "imported", "completed"])
@pytest.mark.parametrize("count", [1, 2_500])
def test_runs_that_are_over_are_opened_again_for_any_host(store: Store, before: str, count: int) -> None:
    start(store, count=2)
    start(store, OTHER, count=2)
    assert together(store, moved(status=before), moved(OTHER, status="imported")) == [Outcome.ACCEPTED] * 2

    back = append(seq=3, count=count, status="paused", reopen=Millis(NOW), keys=[KeyRow("k", "d", Seq(4))])
    over = append(OTHER, seq=3, count=0, status="completed", reopen=Millis(NOW), attributes={"to": None})
    assert together(store, back, over) == [Outcome.ACCEPTED] * 2
    there = row(store)
    assert (there.status, there.seq, there.ended_at, there.wake_at) == ("paused", 3 + count, None, NOW)
    assert [one.seq for one in load(store).events] == list(range(1, count + 4))
    assert go(store.log.keys(RUN)) == [KeyRow("k", "d", Seq(4))]
    other = row(store, OTHER)
    assert (other.status, other.ended_at, other.wake_at, dict(other.attributes)) == ("completed", 2_003, None, {})
    (claimable,) = go(store.directory.claimable([FLOW], dead=[], now=Millis(NOW), limit=9))
    assert claimable.uid == RUN
    assert [one.owner for one in claim(store, epoch=1)] == [HERE]


def test_an_entry_of_the_audit_table_is_written_with_them_once(store: Store, peer: Store) -> None:
    start(store, count=2)
    start(store, OTHER, count=2)
    values: dict[str, Any] = {"at": Millis(NOW), "run": "a", "uid": RUN, "workflow": "w", "by": "", "reason": ""}
    once = AuditEntry(verb="move", details={"digest": "d1"}, **values)
    again = AuditEntry(verb="adopt", details={"digest": "d1"}, **values)

    assert go(store.log.write_together([moved(seq=1)], once)) == [Outcome.STALE_SEQ]
    assert not go(store.holds.audit())
    assert go(store.log.write_together([moved()], once)) == [Outcome.ACCEPTED]
    assert go(peer.log.write_together([moved(OTHER)], again)) == [Outcome.KEY_TAKEN]
    assert row(store, OTHER).status == "running"
    other = msgspec.structs.replace(again, details={"digest": "d2"})
    assert go(peer.log.write_together([moved(OTHER)], other)) == [Outcome.ACCEPTED]
    assert [one.verb for one in go(store.holds.audit())] == ["adopt", "move"]


def test_the_keys_of_a_run_are_listed(store: Store) -> None:
    start(store, count=1)
    commit(store, append(seq=1, keys=[KeyRow("b", "2", Seq(2)), KeyRow("a", "1", Seq(2))]))

    assert [key.key for key in go(store.log.keys(RUN))] == ["a", "b"]
    assert go(store.log.keys(NOBODY)) == []
    assert found(store, new().id) is not None
