"""A run that is created with its whole log: a fork, or one from a bundle."""

from typing import Any

import pytest

from tests.contract.kit import HERE, OTHER, RUN, append, claim, create, go, load, new, row, start
from weft.core.ids import Millis
from weft.ports.run_query import RunQuery
from weft.ports.store import Append, Outcome, Store

NOW = 9_000


def whole(uid: str = RUN, *, count: int = 3, status: str = "running", wake: int | None = NOW, **fields: Any) -> Append:
    row_fields = {"owner": None, "created_at": NOW, "wake_at": wake, "attributes": fields.pop("attributes", {})}
    return append(uid, epoch=0, count=count, create=new(uid, **row_fields), status=status, **fields)


def write(store: Store, run: Append) -> Outcome:
    return go(store.log.write_run(run))


@pytest.mark.parametrize("count", [1, 3, 2_000, 4_500])
def test_the_whole_log_is_there_for_every_process(store: Store, peer: Store, count: int) -> None:
    assert write(store, whole(count=count)) is Outcome.ACCEPTED

    there = load(peer)
    assert [one.seq for one in there.events] == list(range(1, count + 1))
    assert (there.row.seq, there.row.status, there.row.updated_at) == (count, "running", 2_000 + count)
    assert (there.row.owner, there.row.created_at, there.row.wake_at) == (None, NOW, NOW)


def test_any_host_may_claim_it_at_once(store: Store) -> None:
    write(store, whole())

    (found,) = go(store.directory.claimable([("order", "1")], dead=[], now=Millis(NOW), limit=10))
    assert found.uid == RUN
    assert [one.owner for one in claim(store)] == [HERE]


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("count", [2, 2_500])
def test_one_that_is_over_is_over(store: Store, status: str, count: int) -> None:
    write(store, whole(status=status, count=count, wake=None))

    there = row(store)
    assert (there.status, there.ended_at, there.wake_at) == (status, 2_000 + count, None)
    assert not go(store.directory.claimable([("order", "1")], dead=[], now=Millis(NOW), limit=10))


def test_an_id_or_uid_that_is_taken_writes_nothing(store: Store) -> None:
    start(store, count=1)

    same_id = append(OTHER, epoch=0, count=2, create=new(OTHER, id=f"id of {RUN}", owner=None), status="running")
    assert write(store, whole(count=2)) is Outcome.ID_TAKEN
    assert write(store, same_id) is Outcome.ID_TAKEN
    assert len(load(store).events) == 1
    assert go(store.log.load(same_id.uid, fold=1)) is None


def test_children_attributes_and_references_come_with_it(store: Store) -> None:
    digest = go(store.blobs.put(b"[1]"))
    child = new("child", owner=None, parent=RUN, start=b'{"start":1}')

    write(store, whole(refs=[digest], children=[child], attributes={"of": "x"}))

    assert row(store, "child").parent == RUN
    assert [one.uid for one in go(store.directory.search(RunQuery(where={"of": "x"}))).rows] == [RUN]
    for now in (10, 10_000_000):
        go(store.blobs.sweep(now=Millis(now), untouched_ms=1))
    assert go(store.blobs.get(digest)) == b"[1]"


def test_a_child_whose_id_is_taken_gets_another(store: Store) -> None:
    create(store, new("elder", id="c", owner=None))

    write(store, whole(children=[new("child", id="c", owner=None, parent=RUN, start=b"{}")]))

    assert row(store, "child").id == "c~child"
