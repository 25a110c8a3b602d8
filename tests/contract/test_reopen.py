"""Trying again: a run that failed or is held is opened by one who does not own it, and by nobody else in between."""

from typing import Any

import pytest

from tests.contract.kit import (
    FLOW,
    HERE,
    RUN,
    THERE,
    append,
    claim,
    commit,
    events,
    finish,
    go,
    load,
    mail,
    rest,
    row,
    send,
    start,
)
from weft.core.ids import Millis
from weft.ports.store import Append, Outcome, Resolved, Store


def reopening(seq: int = 1, at: int = 9_000, **fields: Any) -> Append:
    return append(seq=seq, status="running", reopen=Millis(at), **fields)


def claimable(store: Store, now: int) -> list[str]:
    return [one.uid for one in go(store.directory.claimable([FLOW], dead=[], now=Millis(now), limit=9))]


def test_a_failed_run_is_opened_and_belongs_to_nobody(store: Store) -> None:
    start(store)
    finish(store, status="failed")

    assert commit(store, reopening(), host=THERE) == [Outcome.ACCEPTED]

    opened = row(store)
    assert (opened.status, opened.owner, opened.epoch, opened.ended_at) == ("running", None, 1, None)
    assert load(store).events == events(1, 2)


def test_it_is_claimable_when_it_is_due(store: Store) -> None:
    start(store)
    finish(store, status="failed")
    commit(store, reopening(at=9_000), host=THERE)

    assert (claimable(store, 8_999), claimable(store, 9_000)) == ([], [RUN])
    assert claim(store, epoch=1)
    assert commit(store, append(seq=2, epoch=2)) == [Outcome.ACCEPTED]


def test_it_takes_mail_again(store: Store) -> None:
    start(store)
    finish(store, status="failed")
    assert send(store, mail()) == ["over"]

    commit(store, reopening(), host=THERE)

    assert send(store, mail()) == ["accepted"]


def test_a_held_run_at_rest_is_opened(store: Store) -> None:
    start(store)
    commit(store, append(status="held"))
    rest(store, seq=1)

    assert commit(store, reopening(), host=THERE) == [Outcome.ACCEPTED]
    assert (row(store).status, row(store).wake_at) == ("running", 9_000)


def test_a_run_that_somebody_owns_is_not_opened(store: Store) -> None:
    start(store)
    commit(store, append(status="held"))

    assert commit(store, reopening(), host=HERE) == [Outcome.STALE_EPOCH]
    assert row(store).status == "held"


def test_what_completed_stays_over(store: Store) -> None:
    start(store)
    finish(store, status="completed")

    assert commit(store, reopening(), host=THERE) == [Outcome.STALE_SEQ]
    assert (row(store).status, row(store).seq) == ("completed", 1)


def test_what_was_cancelled_can_be_opened_again_in_another_version(store: Store) -> None:
    start(store)
    finish(store, status="cancelled")
    again = reopening()
    again.resolved = Resolved("2", "code")

    assert commit(store, again, host=THERE) == [Outcome.ACCEPTED]
    assert (row(store).status, row(store).version, row(store).ended_at) == ("running", "2", None)


def test_of_two_who_try_again_one_wins(store: Store, peer: Store) -> None:
    start(store)
    finish(store, status="failed")

    assert commit(store, reopening(), host=HERE) == [Outcome.ACCEPTED]
    assert commit(peer, reopening(), host=THERE) == [Outcome.STALE_SEQ]
    assert row(store).seq == 2


@pytest.mark.parametrize(
    ("seq", "epoch", "outcome"), [(0, 1, Outcome.STALE_SEQ), (2, 1, Outcome.STALE_SEQ), (1, 2, Outcome.STALE_EPOCH)]
)
def test_opening_is_fenced_like_any_append(store: Store, seq: int, epoch: int, outcome: Outcome) -> None:
    start(store)
    finish(store, status="failed")

    assert commit(store, reopening(seq, epoch=epoch), host=THERE) == [outcome]
    assert row(store).status == "failed"


def test_an_opened_run_may_end_again(store: Store) -> None:
    start(store)
    finish(store, status="failed")
    commit(store, reopening(), host=THERE)
    claim(store, epoch=1)

    finish(store, seq=2, epoch=2)

    assert (row(store).status, row(store).wake_at, row(store).owner) == ("completed", None, None)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_the_log_of_a_run_that_is_over_is_added_to_and_it_stays_as_it_ended(store: Store, status: str) -> None:
    start(store)
    finish(store, status=status)
    before = row(store)
    added = append(seq=1, status=status, reopen=Millis(9_000), attributes={"seen": True})

    assert commit(store, added, host=THERE) == [Outcome.ACCEPTED]

    after = row(store)
    assert (after.status, after.ended_at, after.wake_at) == (status, before.ended_at, None)
    assert (after.seq, after.attributes["seen"]) == (2, True)
    assert claimable(store, 9_000) == []
    assert send(store, mail()) == ["over"]


def test_a_run_that_completed_is_not_written_to_as_if_it_had_failed(store: Store) -> None:
    start(store)
    finish(store, status="completed")

    assert commit(store, append(seq=1, status="failed", reopen=Millis(9_000)), host=THERE) == [Outcome.STALE_SEQ]
