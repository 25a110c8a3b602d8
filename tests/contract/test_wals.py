"""WALs: which runs name one, and who may claim a run that does."""

from pathlib import Path

import pytest

from tests.contract import test_key_limits as limits
from tests.contract.conftest import STORES, Emptying, Opened
from tests.contract.kit import (
    FLOW,
    HERE,
    NOBODY,
    OTHER,
    RUN,
    THERE,
    append,
    claim,
    commit,
    create,
    finish,
    go,
    new,
    rest,
    row,
    start,
)
from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid
from weft.ports.store import Outcome, Store
from weft.ports.wals import ATTACHED_PER_CALL, Loss, LossReason, Wals
from weft.stores.sqlite import SqliteStore


@pytest.fixture(params=["memory", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path, emptying: Emptying) -> Opened:
    """The stores before which there may be Redis."""
    return STORES[request.param](tmp_path, emptying)


def wals(store: Store) -> Wals:
    assert store.wals is not None
    return store.wals


def open_wal(store: Store, host: HostId = HERE) -> int:
    return go(wals(store).open(host, "redis-1"))


def attach(store: Store, wal: int, *, uid: RunUid = RUN, epoch: int = 1, host: HostId = HERE) -> list[RunUid]:
    return list(go(wals(store).attach(wal, host, {uid: Epoch(epoch)})))


def undrained(store: Store, *hosts: HostId) -> list[int]:
    return [wal.id for wal in go(wals(store).undrained(hosts))]


def drain(store: Store, wal: int) -> None:
    assert go(wals(store).mark_drained(wal))


def lost(wal: int) -> Loss:
    runs = [RunId("id of run-1")]
    return Loss(wal=wal, host=HERE, at=Millis(5_000), reason=LossReason.GONE, batches=3, runs=runs)


def test_a_store_in_a_file_has_no_wals(tmp_path: Path) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path}/weft.db")
    go(store.open())

    assert store.wals is None

    go(store.close())


# --- the rows ---------------------------------------------------------------------------------------------------------


def test_a_new_wal_is_not_drained(store: Store, peer: Store) -> None:
    number = open_wal(store)

    (wal,) = go(wals(peer).undrained([HERE, THERE]))

    assert (wal.id, wal.host, wal.redis, wal.last) == (number, HERE, "redis-1", 0)
    assert wal.opened_at > 1_700_000_000_000


def test_no_number_is_used_twice(store: Store, peer: Store) -> None:
    first = open_wal(store)
    drain(store, first)

    assert open_wal(peer, THERE) > first


def test_only_wals_of_the_hosts_in_question_are_found(store: Store) -> None:
    here = open_wal(store)
    there = open_wal(store, THERE)

    assert undrained(store, HERE) == [here]
    assert undrained(store, HERE, THERE) == [here, there]
    assert undrained(store) == []


def test_a_wal_is_marked_as_drained_once(store: Store, peer: Store) -> None:
    wal = open_wal(store)

    assert go(wals(peer).mark_drained(wal, forced=True)) is True
    assert go(wals(store).mark_drained(wal)) is False
    assert undrained(store, HERE) == []


def test_the_last_number_only_rises(store: Store, peer: Store) -> None:
    wal = open_wal(store)

    assert go(wals(store).note(wal, 7)) is True
    assert go(wals(store).note(wal, 5)) is True

    assert [one.last for one in go(wals(peer).undrained([HERE]))] == [7]


def test_an_owner_hears_that_its_wal_was_marked_as_drained(store: Store, peer: Store) -> None:
    wal = open_wal(store)
    go(wals(peer).mark_drained(wal, forced=True))

    assert go(wals(store).note(wal, 1)) is False


def test_a_host_that_left_an_open_wal_is_found_dead_though_it_owns_nothing(store: Store) -> None:
    wal = open_wal(store)

    assert go(store.hosts.find_dead(monotonic=0.0)) == [HERE]
    drain(store, wal)
    assert go(store.hosts.find_dead(monotonic=0.0)) == []


# --- which runs name a WAL --------------------------------------------------------------------------------------------


def test_without_a_wal_no_run_names_one(store: Store) -> None:
    start(store)
    create(store, new(OTHER, owner=None))
    claim(store, OTHER)

    assert (row(store).wal, row(store, OTHER).wal) == (None, None)


def test_a_run_is_created_on_the_wal_of_its_host(store: Store) -> None:
    wal = open_wal(store)

    start(store, count=1)

    assert row(store).wal == wal


def test_a_child_with_an_owner_is_created_on_the_wal_of_its_host(store: Store) -> None:
    start(store)
    wal = open_wal(store)

    commit(store, append(children=[new("child"), new("orphan", owner=None)]))

    assert (row(store, "child").wal, row(store, "orphan").wal) == (wal, None)
    assert row(store).wal is None


def test_a_run_without_an_owner_names_no_wal(store: Store) -> None:
    open_wal(store)

    create(store, new(owner=None))

    assert row(store).wal is None


def test_a_run_that_ends_as_it_begins_names_no_wal(store: Store) -> None:
    open_wal(store)

    commit(store, append(create=new(), status="completed"))

    assert row(store).wal is None


def test_a_claimed_run_names_the_wal_of_the_claimant(store: Store) -> None:
    wal = open_wal(store)
    for uid in ("a", "b", "c"):
        create(store, new(uid, owner=None))

    assert [one.wal for one in claim(store, "a")] == [wal]
    uids = [RunUid("b"), RunUid("c")]
    both = go(store.log.claim(uids, HERE, expected=dict.fromkeys(uids, Epoch(0))))
    assert [one.wal for one in both] == [wal, wal]


def test_a_claim_by_a_host_without_a_wal_clears_it(store: Store) -> None:
    wal = open_wal(store)
    start(store)
    drain(store, wal)

    assert [one.wal for one in claim(store, epoch=1, host=THERE)] == [None]


def test_runs_that_are_claimed_together_name_the_wal_of_the_claimant(store: Store) -> None:
    wal = open_wal(store)
    for uid in ("a", "b"):
        start(store, uid)
    drain(store, wal)
    later = open_wal(store)
    uids = [RunUid("a"), RunUid("b")]

    both = go(store.log.claim(uids, HERE, expected=dict.fromkeys(uids, Epoch(1))))

    assert [one.wal for one in both] == [later, later]


def test_nothing_is_created_or_claimed_on_a_drained_wal(store: Store, peer: Store) -> None:
    go(wals(peer).mark_drained(open_wal(store), forced=True))
    create(store, new(OTHER, owner=None))

    start(store)
    claim(store, OTHER)

    assert (row(store).wal, row(store, OTHER).wal) == (None, None)


def test_a_run_that_ends_is_released_or_moved_names_no_wal(store: Store) -> None:
    wal = open_wal(store)
    for uid in ("ends", "rests"):
        start(store, uid)

    finish(store, "ends")
    rest(store, "rests")
    start(store, "moves")
    drain(store, wal)
    moved = append("moves", status="moved")

    assert go(store.log.write_together([moved])) == [Outcome.ACCEPTED]
    assert [row(store, uid).wal for uid in ("ends", "rests", "moves")] == [None, None, None]


def test_a_run_that_may_not_begin_yet_names_no_wal(store: Store) -> None:
    limits.declare(store, limits.FLOW, concurrency=1)
    open_wal(store)
    for uid in ("a", "b"):
        limits.waiting_run(store, uid)

    assert [limits.admit(store, uid) for uid in ("a", "b")] == [True, False]
    assert (row(store, "b").owner, row(store, "b").wal) == (None, None)


def test_a_run_that_cannot_be_read_names_no_wal(store: Store) -> None:
    open_wal(store)
    start(store)

    go(store.log.mark_fault(RUN, "damaged"))

    assert len(claim(store, epoch=1, host=THERE)) == 1


def test_plain_appends_leave_the_wal_as_it_is(store: Store) -> None:
    wal = open_wal(store)
    start(store)

    commit(store, append())
    commit(store, append(seq=1, refs=["0" * 64]))

    assert row(store).wal == wal


# --- attaching --------------------------------------------------------------------------------------------------------


def test_runs_are_attached_to_a_newer_wal(store: Store) -> None:
    start(store)
    start(store, OTHER)
    wal = open_wal(store)

    attached = go(wals(store).attach(wal, HERE, {RUN: Epoch(1), OTHER: Epoch(1)}))

    assert sorted(attached) == [RUN, OTHER]
    assert (row(store).wal, row(store, OTHER).wal) == (wal, wal)
    assert go(wals(store).attached(wal, limit=10)) == ["id of run-1", "id of run-2"]
    assert go(wals(store).attached(wal, limit=1)) == ["id of run-1"]


def test_only_a_run_that_its_host_owns_in_this_epoch_is_attached(store: Store) -> None:
    for uid in ("claimed", "taken", "rests", "over"):
        start(store, uid)
    claim(store, "claimed", epoch=1)
    claim(store, "taken", epoch=1, host=THERE)
    rest(store, "rests")
    finish(store, "over")
    wal = open_wal(store)
    epochs = {"claimed": 1, "taken": 2, "rests": 1, "over": 1, NOBODY: 1}

    attached = go(wals(store).attach(wal, HERE, {RunUid(uid): Epoch(epoch) for uid, epoch in epochs.items()}))

    assert attached == []
    assert [row(store, uid).wal for uid in ("claimed", "taken", "rests", "over")] == [None] * 4


def test_nothing_is_attached_to_a_drained_wal_or_one_of_another_host(store: Store) -> None:
    start(store)
    foreign = open_wal(store, THERE)
    drained = open_wal(store)
    drain(store, drained)

    assert attach(store, foreign) == []
    assert attach(store, drained) == []
    assert row(store).wal is None


def test_more_runs_than_one_call_takes_are_attached(store: Store) -> None:
    uids = [RunUid(f"run-{n}") for n in range(ATTACHED_PER_CALL + 2)]
    commit(store, *[append(uid, count=0, create=new(uid)) for uid in uids])
    wal = open_wal(store)

    attached = go(wals(store).attach(wal, HERE, dict.fromkeys(uids, Epoch(1))))

    assert sorted(attached) == sorted(uids)


def test_a_run_that_another_host_claimed_is_not_attached_any_more(store: Store) -> None:
    wal = open_wal(store)
    start(store)
    drain(store, wal)
    claim(store, epoch=1, host=THERE)

    assert go(wals(store).attached(wal, limit=10)) == []


# --- claiming ---------------------------------------------------------------------------------------------------------


def test_a_run_on_an_open_wal_is_not_claimed_away(store: Store, peer: Store) -> None:
    wal = open_wal(store)
    start(store)
    start(store, OTHER)
    uids = [RUN, OTHER]

    assert claim(peer, epoch=1, host=THERE) == []
    assert go(peer.log.claim(uids, THERE, expected=dict.fromkeys(uids, Epoch(1)))) == []
    assert row(store).epoch == 1

    drain(peer, wal)
    assert [one.epoch for one in claim(peer, epoch=1, host=THERE)] == [2]


def test_an_owner_claims_its_own_run_whatever_its_wal(store: Store) -> None:
    wal = open_wal(store)
    start(store)

    assert [(one.epoch, one.wal) for one in claim(store, epoch=1)] == [(2, wal)]


def test_of_several_runs_those_on_an_open_wal_stay_and_the_others_are_claimed(store: Store, peer: Store) -> None:
    start(store, "free")
    open_wal(store)
    start(store, "hot")
    uids = [RunUid("hot"), RunUid("free")]

    claimed = go(peer.log.claim(uids, THERE, expected=dict.fromkeys(uids, Epoch(1))))

    assert [one.uid for one in claimed] == ["free"]


def test_a_newer_wal_of_the_owner_protects_only_what_is_attached_to_it(store: Store, peer: Store) -> None:
    old = open_wal(store)
    start(store)
    start(store, OTHER)
    newer = open_wal(store)
    attach(store, newer)
    drain(store, old)

    assert claim(peer, epoch=1, host=THERE) == []
    assert [one.uid for one in claim(peer, OTHER, epoch=1, host=THERE)] == [OTHER]


def test_a_run_on_an_open_wal_is_still_found_as_claimable(store: Store) -> None:
    """Its WAL is drained first, by whoever wants it."""
    open_wal(store)
    start(store)

    rows = go(store.directory.claimable([FLOW], dead=[HERE], now=Millis(9_000), limit=10))

    assert [one.uid for one in rows] == [RUN]


def test_a_run_on_an_open_wal_is_not_moved_to_another_store(store: Store) -> None:
    """Its log may be longer than the store knows."""
    wal = open_wal(store)
    start(store)

    assert go(store.log.write_together([append(status="moved")])) == [Outcome.STALE_SEQ]
    drain(store, wal)
    assert go(store.log.write_together([append(status="moved")])) == [Outcome.ACCEPTED]


def test_others_commit_in_the_name_of_a_dead_host(store: Store, peer: Store) -> None:
    wal = open_wal(store)
    start(store)

    assert commit(peer, append()) == [Outcome.ACCEPTED]
    drain(peer, wal)
    claim(peer, epoch=1, host=THERE)
    assert commit(peer, append(seq=1)) == [Outcome.STALE_EPOCH]


# --- losses -----------------------------------------------------------------------------------------------------------


def test_a_loss_is_recorded_with_the_mark_until_somebody_acknowledges_it(store: Store, peer: Store) -> None:
    wal = open_wal(store)

    assert go(wals(store).mark_drained(wal, forced=True, loss=lost(wal))) is True
    assert go(wals(peer).losses()) == [lost(wal)]

    assert go(wals(peer).acknowledge_losses()) == 1
    assert go(wals(store).losses()) == []
    assert go(wals(store).acknowledge_losses()) == 0


def test_who_comes_second_records_no_loss(store: Store, peer: Store) -> None:
    """The first one has drained the WAL, so nothing that the second one did not find is lost."""
    wal = open_wal(store)
    drain(store, wal)

    assert go(wals(peer).mark_drained(wal, forced=True, loss=lost(wal))) is False
    assert go(wals(store).losses()) == []


def test_a_wal_that_was_drained_is_no_loss(store: Store) -> None:
    drain(store, open_wal(store))

    assert go(wals(store).losses()) == []


# --- the server -------------------------------------------------------------------------------------------------------


def test_all_processes_see_one_namespace(store: Store, peer: Store) -> None:
    name = go(wals(store).namespace())

    assert len(name) == 16
    assert go(wals(peer).namespace()) == name


def test_the_first_host_sets_the_id_of_the_server(store: Store, peer: Store) -> None:
    assert go(wals(store).redis_id()) is None
    assert go(wals(store).agree_redis_id(None, "first")) == "first"
    assert go(wals(peer).agree_redis_id(None, "second")) == "first"
    assert go(wals(peer).redis_id()) == "first"


def test_of_two_who_replace_an_id_one_wins(store: Store, peer: Store) -> None:
    go(wals(store).agree_redis_id(None, "first"))

    assert go(wals(store).agree_redis_id("first", "second")) == "second"
    assert go(wals(peer).agree_redis_id("first", "third")) == "second"


def test_hosts_say_which_server_they_see(store: Store, peer: Store) -> None:
    go(store.hosts.join(HERE, lease_ms=10_000))
    go(peer.hosts.join(THERE, lease_ms=10_000))
    go(wals(store).see_redis_id(HERE, "first"))

    assert go(wals(peer).seen_redis_ids()) == {HERE: "first", THERE: None}

    go(wals(store).see_redis_id(HERE, None))
    go(wals(store).see_redis_id(HostId("stranger"), "first"))
    assert go(wals(peer).seen_redis_ids()) == {HERE: None, THERE: None}
