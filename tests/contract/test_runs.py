"""Making runs, loading them, and reading their events."""

import pytest

from tests.contract.kit import (
    HERE,
    NOBODY,
    OTHER,
    RUN,
    append,
    commit,
    create,
    events,
    finish,
    found,
    go,
    inbox,
    load,
    new,
    rest,
    row,
    start,
)
from weft.core.ids import Seq
from weft.ports.store import Outcome, Snapshot, Store


def test_a_run_made_by_an_append_is_owned_at_epoch_one(store: Store) -> None:
    start(store, count=1)

    made = row(store)
    assert (made.owner, made.epoch, made.status, made.seq, made.mail) == (HERE, 1, "running", 1, 0)


def test_the_row_keeps_what_the_run_was_made_with(store: Store) -> None:
    start(store, version="7", style="graph", parent=OTHER, format=3, attributes={"a": 1}, created_at=42)

    made = row(store)
    assert (made.id, made.workflow, made.version, made.style) == ("id of run-1", "order", "7", "graph")
    assert (made.parent, made.format, made.attributes, made.created_at) == (OTHER, 3, {"a": 1}, 42)
    assert (made.updated_at, made.ended_at, made.wake_at, made.fault) == (42, None, None, None)


def test_a_run_made_from_outside_belongs_to_nobody(store: Store) -> None:
    assert create(store, new(owner=None, start=b'{"go":1}', wake_at=9)) == [Outcome.ACCEPTED]

    made = row(store)
    assert (made.owner, made.epoch, made.mail, made.wake_at) == (None, 0, 1, 9)
    assert [piece.body for piece in load(store).inbox] == [b'{"go":1}']


def test_a_run_made_without_start_mail_has_an_empty_inbox(store: Store) -> None:
    create(store, new(owner=None))

    assert (row(store).mail, inbox(store)) == (0, [])


def test_an_id_is_taken_once(store: Store) -> None:
    start(store, id="mine")

    assert create(store, new(OTHER, id="mine", owner=None)) == [Outcome.ID_TAKEN]
    assert commit(store, append(OTHER, create=new(OTHER, id="mine"))) == [Outcome.ID_TAKEN]
    assert found(store, "mine") == row(store, RUN)
    assert go(store.directory.row(OTHER)) is None


def test_an_id_stays_taken_after_the_end(store: Store) -> None:
    start(store, id="mine")
    finish(store)

    assert create(store, new(OTHER, id="mine", owner=None)) == [Outcome.ID_TAKEN]


def test_the_same_run_is_not_made_twice(store: Store) -> None:
    create(store, new(owner=None, start=b"1"))

    assert create(store, new(owner=None, start=b"1")) == [Outcome.ID_TAKEN]
    assert create(store, new(id="another id", owner=None)) == [Outcome.ID_TAKEN]
    assert row(store).mail == 1


def test_a_taken_id_harms_no_other_run(store: Store) -> None:
    start(store, id="mine")

    outcomes = create(store, new("a", owner=None), new("b", id="mine", owner=None), new("c", owner=None))

    assert outcomes == [Outcome.ACCEPTED, Outcome.ID_TAKEN, Outcome.ACCEPTED]


def test_a_run_that_nobody_knows_is_not_found(store: Store) -> None:
    assert go(store.log.load(NOBODY, fold=1)) is None
    assert go(store.directory.row(NOBODY)) is None
    assert found(store, "no such id") is None
    assert go(store.log.events(NOBODY, after=Seq(0), limit=10)) == []
    assert go(store.log.inbox(NOBODY)) == []


def test_loading_gives_the_row_and_all_events(store: Store) -> None:
    start(store, count=3)

    loaded = load(store)

    assert (loaded.row, loaded.events, loaded.snapshot) == (row(store), events(1, 3), None)


def test_a_long_log_is_loaded_whole(store: Store) -> None:
    start(store, count=1_500)

    assert load(store).events == events(1, 1_500)


def test_a_snapshot_stands_for_the_events_before_it(store: Store) -> None:
    start(store, count=2)
    snapshot = Snapshot(Seq(4), 1, b"state")
    commit(store, append(seq=2, count=2, snapshot=snapshot))
    commit(store, append(seq=4, count=1))

    loaded = load(store)

    assert (loaded.snapshot, loaded.events) == (snapshot, events(5, 5))


def test_a_snapshot_of_another_fold_is_ignored(store: Store) -> None:
    start(store, count=2)
    commit(store, append(seq=2, snapshot=Snapshot(Seq(3), 1, b"state")))

    loaded = load(store, fold=2)

    assert (loaded.snapshot, loaded.events) == (None, events(1, 3))


def test_the_newest_snapshot_counts(store: Store) -> None:
    start(store)
    for seq in range(3):
        commit(store, append(seq=seq, snapshot=Snapshot(Seq(seq + 1), 1, b"state %d" % seq)))

    assert load(store).snapshot == Snapshot(Seq(3), 1, b"state 2")


def test_each_fold_has_a_newest_snapshot(store: Store) -> None:
    start(store)
    commit(store, append(snapshot=Snapshot(Seq(1), 1, b"old")))
    commit(store, append(seq=1, snapshot=Snapshot(Seq(2), 2, b"new")))

    assert (load(store, fold=1).snapshot, load(store, fold=2).snapshot) == (
        Snapshot(Seq(1), 1, b"old"),
        Snapshot(Seq(2), 2, b"new"),
    )


def test_a_snapshot_may_hold_any_bytes(store: Store) -> None:
    start(store)
    body = bytes(range(256)) * 500

    rest(store, snapshot=Snapshot(Seq(0), 1, body))

    assert load(store).snapshot == Snapshot(Seq(0), 1, body)


@pytest.mark.parametrize(
    ("after", "limit", "first", "last"), [(0, 10, 1, 5), (0, 2, 1, 2), (2, 2, 3, 4), (4, 10, 5, 5), (0, 1_000, 1, 5)]
)
def test_events_are_read_in_pages(store: Store, after: int, limit: int, first: int, last: int) -> None:
    start(store, count=5)

    assert list(go(store.log.events(RUN, after=Seq(after), limit=limit))) == events(first, last)


@pytest.mark.parametrize("after", [5, 6])
def test_there_are_no_events_after_the_last(store: Store, after: int) -> None:
    start(store, count=5)

    assert list(go(store.log.events(RUN, after=Seq(after), limit=10))) == []


def test_the_events_of_a_run_are_its_own(store: Store) -> None:
    start(store, "a", count=2)
    start(store, "b", count=1)
    commit(store, append("a", seq=2), append("b", seq=1))

    assert (len(load(store, "a").events), len(load(store, "b").events)) == (3, 2)


def test_a_fault_is_noted_on_the_row_and_taken_back(store: Store) -> None:
    start(store)

    go(store.log.mark_fault(RUN, "event 3 is damaged"))
    assert row(store).fault == "event 3 is damaged"

    go(store.log.mark_fault(RUN, None))
    assert row(store).fault is None


def test_a_fault_of_a_run_that_nobody_knows_is_no_error(store: Store) -> None:
    go(store.log.mark_fault(NOBODY, "gone"))
