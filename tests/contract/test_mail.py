"""Mail: accepted once, kept in order of arrival, consumed by identity, never lost to a run that ends."""

import pytest

from tests.contract.kit import (
    NOBODY,
    OTHER,
    RUN,
    append,
    commit,
    create,
    finish,
    inbox,
    load,
    mail,
    new,
    rest,
    row,
    send,
    start,
)
from weft.ports.store import Outcome, Store


def test_accepted_mail_is_in_the_inbox_and_counted(store: Store) -> None:
    start(store)
    piece = mail(key="k", digest="d")

    assert send(store, piece) == ["accepted"]
    assert list(load(store).inbox) == [piece]
    assert row(store).mail == 1


def test_mail_is_read_by_another_process(store: Store, peer: Store) -> None:
    start(store)

    send(peer, mail())

    assert inbox(store) == ["m1"]


def test_mail_keeps_the_order_of_arrival(store: Store) -> None:
    """Not the order of its times, and not that of its ids."""
    start(store)

    send(store, mail("z", at=5), mail("a", at=9))
    send(store, mail("m", at=1))

    assert inbox(store) == ["z", "a", "m"]


def test_the_same_id_is_one_piece_of_mail(store: Store) -> None:
    start(store)

    assert send(store, mail(), mail()) == ["accepted", "duplicate"]
    assert send(store, mail(body=b"2")) == ["duplicate"]
    assert (inbox(store), row(store).mail) == (["m1"], 1)


def test_the_same_id_is_one_piece_of_mail_also_after_it_was_taken(store: Store) -> None:
    start(store)
    send(store, mail())
    commit(store, append(taken=["m1"]))

    assert send(store, mail()) == ["duplicate"]
    assert (inbox(store), row(store).mail) == ([], 1)


def test_the_same_id_is_one_piece_of_mail_also_after_the_end(store: Store) -> None:
    start(store)
    send(store, mail())
    finish(store, taken=["m1"], mail_taken=1)

    assert send(store, mail()) == ["duplicate"]


def test_an_id_means_something_in_its_run_only(store: Store) -> None:
    start(store)
    start(store, OTHER)

    assert send(store, mail(to=RUN), mail(to=OTHER)) == ["accepted", "accepted"]


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_mail_to_a_run_that_is_over_is_refused(store: Store, status: str) -> None:
    start(store)
    finish(store, status=status)

    assert send(store, mail()) == ["over"]
    assert (inbox(store), row(store).mail) == ([], 0)


def test_mail_to_a_run_that_nobody_knows_is_refused(store: Store) -> None:
    assert send(store, mail(to=NOBODY)) == ["unknown_run"]


def test_refused_mail_harms_no_other(store: Store) -> None:
    start(store)

    assert send(store, mail("a"), mail(to=NOBODY), mail("b")) == ["accepted", "unknown_run", "accepted"]
    assert inbox(store) == ["a", "b"]


def test_mail_to_a_run_at_rest_is_accepted(store: Store) -> None:
    start(store)
    rest(store)

    assert send(store, mail()) == ["accepted"]


def test_taken_mail_is_gone_and_the_count_stays(store: Store) -> None:
    start(store)
    send(store, mail("a"), mail("b"), mail("c"))

    commit(store, append(taken=["b"]))

    assert (inbox(store), row(store).mail) == (["a", "c"], 3)


def test_all_waiting_mail_may_be_taken_at_once(store: Store) -> None:
    start(store)
    send(store, *[mail(f"m{n}") for n in range(50)])

    commit(store, append(taken=[f"m{n}" for n in range(50)]))

    assert inbox(store) == []


def test_taking_what_is_not_there_is_no_error(store: Store) -> None:
    start(store)
    send(store, mail("a"))

    assert commit(store, append(taken=["a", "ghost"])) == [Outcome.ACCEPTED]
    assert inbox(store) == []


def test_a_refused_append_takes_no_mail(store: Store) -> None:
    start(store)
    send(store, mail("a"))

    commit(store, append(seq=4, taken=["a"]))

    assert inbox(store) == ["a"]


def test_mail_that_comes_after_a_load_stops_the_end(store: Store) -> None:
    """The count decides, not whether the inbox is empty: mail that was sent and taken elsewhere counts too."""
    start(store)
    send(store, mail("a"))
    commit(store, append(taken=["a"]))
    send(store, mail("late"))

    assert commit(store, append(seq=1, status="completed", mail_taken=1)) == [Outcome.MAIL_WAITING]
    assert row(store).status == "running"
    assert inbox(store) == ["late"]


def test_mail_between_runs_goes_with_the_append(store: Store) -> None:
    start(store)
    start(store, OTHER)
    piece = mail("from run-1 at 1", to=OTHER)

    commit(store, append(mail=[piece]))

    assert (list(load(store, OTHER).inbox), row(store, OTHER).mail) == ([piece], 1)


def test_mail_between_runs_is_one_piece_per_id(store: Store) -> None:
    start(store)
    start(store, OTHER)

    commit(store, append(mail=[mail(to=OTHER)]))
    commit(store, append(seq=1, mail=[mail(to=OTHER)]))

    assert row(store, OTHER).mail == 1


def test_mail_from_a_run_to_one_that_is_over_or_unknown_is_dropped(store: Store) -> None:
    start(store)
    start(store, OTHER)
    finish(store, OTHER)

    assert commit(store, append(mail=[mail(to=OTHER), mail(to=NOBODY)])) == [Outcome.ACCEPTED]
    assert inbox(store, OTHER) == []


def test_a_run_that_ends_may_write_to_others(store: Store) -> None:
    start(store)
    start(store, OTHER)

    finish(store, mail=[mail("child ended", to=OTHER)])

    assert inbox(store, OTHER) == ["child ended"]


def test_a_run_may_write_to_itself(store: Store) -> None:
    start(store)

    commit(store, append(mail=[mail("note")]))

    assert (inbox(store), row(store).mail) == (["note"], 1)


def test_start_mail_counts_and_is_taken_like_any_other(store: Store) -> None:
    create(store, new(owner=None, start=b'{"go":1}'))
    (first,) = inbox(store)
    send(store, mail("second"))
    assert inbox(store) == [first, "second"]

    assert row(store).mail == 2


def test_an_empty_delivery_does_nothing(store: Store) -> None:
    assert send(store) == []
