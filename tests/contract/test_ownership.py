"""Claims and releases: an epoch that only rises, and no rest while mail waits."""

import pytest

from tests.contract.kit import (
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
    load,
    mail,
    new,
    release,
    rest,
    row,
    send,
    start,
)
from weft.core.ids import Epoch, RunUid, Seq
from weft.ports.store import Outcome, Snapshot, Store


def test_a_claim_makes_an_owner_and_raises_the_epoch(store: Store) -> None:
    create(store, new(owner=None))

    claimed = claim(store)

    assert [(one.owner, one.epoch) for one in claimed] == [(HERE, 1)]
    assert claimed == [row(store)]


def test_a_claim_at_another_epoch_than_the_runs_gets_nothing(store: Store) -> None:
    create(store, new(owner=None))

    assert claim(store, epoch=1) == []
    assert row(store).owner is None


def test_of_two_who_claim_at_the_same_epoch_one_wins(store: Store, peer: Store) -> None:
    create(store, new(owner=None))

    assert len(claim(store, host=HERE)) == 1
    assert claim(peer, host=THERE) == []
    assert row(store).owner == HERE


def test_a_run_is_claimed_away_from_its_owner(store: Store) -> None:
    start(store)

    assert [one.epoch for one in claim(store, epoch=1, host=THERE)] == [2]
    assert commit(store, append()) == [Outcome.STALE_EPOCH]
    assert commit(store, append(epoch=2), host=THERE) == [Outcome.ACCEPTED]


def test_an_owner_may_claim_its_own_run_again(store: Store) -> None:
    """After a commit whose outcome is unknown: the higher epoch ends whatever is still on its way."""
    start(store)

    assert [one.epoch for one in claim(store, epoch=1)] == [2]
    assert commit(store, append(epoch=1)) == [Outcome.STALE_EPOCH]
    assert commit(store, append(epoch=2)) == [Outcome.ACCEPTED]


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_run_that_is_over_cannot_be_claimed(store: Store, status: str) -> None:
    start(store)
    finish(store, status=status)

    assert claim(store, epoch=1) == []


@pytest.mark.parametrize("status", ["paused", "cancelling", "rolling_back", "held"])
def test_a_run_in_any_open_status_can_be_claimed(store: Store, status: str) -> None:
    start(store)
    commit(store, append(status=status))

    assert [one.status for one in claim(store, epoch=1)] == [status]


def test_a_claim_gets_those_it_can(store: Store) -> None:
    for uid in ("a", "b", "c"):
        create(store, new(uid, owner=None))
    claim(store, "b", host=THERE)
    wanted = [RunUid(uid) for uid in ("c", "b", "a", NOBODY)]

    claimed = go(store.log.claim(wanted, HERE, expected=dict.fromkeys(wanted, Epoch(0))))

    assert [one.uid for one in claimed] == ["c", "a"]


def test_a_run_without_an_expected_epoch_is_not_claimed(store: Store) -> None:
    create(store, new(owner=None))

    assert go(store.log.claim([RUN], HERE, expected={})) == []


def test_a_claim_ends_the_rest(store: Store) -> None:
    start(store)
    rest(store, wake_at=9_000)

    assert [one.wake_at for one in claim(store, epoch=1)] == [None]


def test_a_released_run_has_no_owner_and_a_time_to_wake(store: Store) -> None:
    start(store, count=1)

    rest(store, seq=1, wake_at=9_000)

    assert (row(store).owner, row(store).wake_at, row(store).epoch) == (None, 9_000, 1)


def test_a_release_keeps_a_snapshot(store: Store) -> None:
    start(store, count=2)

    rest(store, seq=2, snapshot=Snapshot(Seq(2), 1, b"state"))

    assert (load(store).snapshot, load(store).events) == (Snapshot(Seq(2), 1, b"state"), [])


def test_a_release_is_refused_while_mail_waits(store: Store) -> None:
    start(store)
    send(store, mail())

    assert go(store.log.release([release()])) == [Outcome.MAIL_WAITING]
    assert row(store).owner == HERE


def test_a_release_by_one_who_took_all_mail_is_accepted(store: Store) -> None:
    start(store)
    send(store, mail())
    commit(store, append(taken=["m1"]))

    rest(store, seq=1, mail_taken=1)


@pytest.mark.parametrize(
    ("epoch", "seq", "outcome"),
    [(2, 1, Outcome.STALE_EPOCH), (0, 1, Outcome.STALE_EPOCH), (1, 0, Outcome.STALE_SEQ), (1, 2, Outcome.STALE_SEQ)],
)
def test_a_release_is_fenced_like_an_append(store: Store, epoch: int, seq: int, outcome: Outcome) -> None:
    start(store, count=1)

    assert go(store.log.release([release(epoch=epoch, seq=seq)])) == [outcome]
    assert row(store).owner == HERE


def test_a_refused_release_writes_no_snapshot(store: Store) -> None:
    start(store)
    send(store, mail())

    go(store.log.release([release(snapshot=Snapshot(Seq(0), 1, b"state"))]))

    assert load(store).snapshot is None


def test_a_release_of_a_run_at_rest_over_or_unknown_is_refused(store: Store) -> None:
    start(store)
    rest(store)
    start(store, OTHER)
    finish(store, OTHER)

    outcomes = go(store.log.release([release(), release(OTHER, seq=1), release(NOBODY)]))

    assert outcomes == [Outcome.STALE_EPOCH] * 3


def test_runs_are_released_in_groups_one_outcome_each(store: Store) -> None:
    for uid in ("a", "b", "c"):
        start(store, uid)
    send(store, mail(to="b"))

    outcomes = go(store.log.release([release(uid) for uid in ("a", "b", "c")]))

    assert outcomes == [Outcome.ACCEPTED, Outcome.MAIL_WAITING, Outcome.ACCEPTED]
    assert [row(store, uid).owner for uid in ("a", "b", "c")] == [None, HERE, None]
