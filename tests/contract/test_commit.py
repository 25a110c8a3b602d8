"""Appends: judged one by one, all of one or nothing, fenced by epoch and by number."""

import pytest

from tests.contract.conftest import STORES
from tests.contract.kit import (
    HERE,
    NOBODY,
    OTHER,
    RUN,
    THERE,
    append,
    claim,
    commit,
    event,
    events,
    finish,
    go,
    load,
    mail,
    new,
    rest,
    row,
    send,
    start,
)
from weft.errors import Conflict
from weft.ports.store import Append, Outcome, Store

pytestmark = pytest.mark.parametrize("make", sorted(STORES), indirect=True)

ACCEPTED = [Outcome.ACCEPTED]


def test_what_was_accepted_can_be_read_by_another_process(store: Store, peer: Store) -> None:
    start(store, count=2)

    assert load(peer).events == events(1, 2)


def test_the_row_names_the_last_event(store: Store) -> None:
    start(store)

    commit(store, append(count=3))

    assert (row(store).seq, row(store).updated_at) == (3, 2_003)


def test_appends_follow_each_other(store: Store) -> None:
    start(store, count=2)

    assert commit(store, append(seq=2, count=2)) == ACCEPTED
    assert commit(store, append(seq=4, count=1)) == ACCEPTED
    assert load(store).events == events(1, 5)


@pytest.mark.parametrize("count", [1, 2, 4, 5, 700])
def test_an_append_has_any_number_of_events(store: Store, count: int) -> None:
    start(store)

    assert commit(store, append(count=count)) == ACCEPTED
    assert load(store).events == events(1, count)


def test_bodies_come_back_byte_by_byte(store: Store) -> None:
    start(store)
    bodies = [b'{"text":"gr\xc3\xbc\xc3\x9fe \xf0\x9f\xa7\xb5"}', b"{}", b'"' + b"x" * 100_000 + b'"', b'{"a" : 1 }']

    commit(store, append(events=[event(seq, body) for seq, body in enumerate(bodies, 1)]))

    assert [one.body for one in load(store).events] == bodies


def test_an_append_under_an_old_epoch_is_refused(store: Store) -> None:
    start(store, count=1)
    claim(store, epoch=1, host=THERE)

    assert commit(store, append(seq=1)) == [Outcome.STALE_EPOCH]
    assert load(store).events == events(1, 1)


def test_an_append_under_an_epoch_that_is_not_there_yet_is_refused(store: Store) -> None:
    start(store)

    assert commit(store, append(epoch=2)) == [Outcome.STALE_EPOCH]


def test_an_append_by_a_host_that_is_not_the_owner_is_refused(store: Store) -> None:
    start(store)

    assert commit(store, append(), host=THERE) == [Outcome.STALE_EPOCH]


def test_an_append_to_a_run_that_nobody_knows_is_refused(store: Store) -> None:
    assert commit(store, append(NOBODY)) == [Outcome.STALE_EPOCH]


def test_an_append_behind_the_end_of_the_log_is_refused(store: Store) -> None:
    start(store, count=2)

    assert commit(store, append(seq=1)) == [Outcome.STALE_SEQ]
    assert load(store).events == events(1, 2)


def test_an_append_beyond_the_end_of_the_log_is_refused(store: Store) -> None:
    start(store, count=2)

    assert commit(store, append(seq=3)) == [Outcome.STALE_SEQ]


def test_the_same_append_twice_is_written_once(store: Store) -> None:
    start(store)

    assert commit(store, append()) == ACCEPTED
    assert commit(store, append()) == [Outcome.STALE_SEQ]
    assert load(store).events == events(1, 1)


def test_the_epoch_is_judged_before_the_number(store: Store) -> None:
    start(store, count=1)

    assert commit(store, append(seq=7, epoch=9)) == [Outcome.STALE_EPOCH]


@pytest.mark.parametrize("numbers", [[2], [1, 3], [1, 1], [2, 1]])
def test_events_with_a_gap_write_nothing_at_all(store: Store, numbers: list[int]) -> None:
    start(store)
    start(store, OTHER)

    with pytest.raises(Conflict):
        commit(store, append(OTHER), append(events=[event(seq) for seq in numbers]))

    assert (row(store).seq, row(store, OTHER).seq) == (0, 0)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_refused_append_harms_no_other(store: Store, place: int) -> None:
    for uid in ("a", "b"):
        start(store, uid)
    batch = [append("a"), append("b", status="paused", attributes={"x": 1})]
    batch.insert(place, append(NOBODY))

    outcomes = commit(store, *batch)

    assert outcomes.pop(place) is Outcome.STALE_EPOCH
    assert outcomes == [Outcome.ACCEPTED, Outcome.ACCEPTED]
    assert (row(store, "a").seq, row(store, "b").status) == (1, "paused")


def test_nothing_of_a_refused_append_is_written(store: Store) -> None:
    start(store)
    start(store, OTHER)
    refused = append(
        seq=5,
        status="paused",
        attributes={"x": 1},
        mail=[mail(to=OTHER)],
        children=[new("child", owner=None)],
    )

    assert commit(store, refused) == [Outcome.STALE_SEQ]
    assert (row(store).status, row(store).attributes, row(store, OTHER).mail) == ("running", {}, 0)
    assert go(store.directory.row(new("child").uid)) is None


def test_outcomes_stand_in_the_order_of_the_batch(store: Store) -> None:
    start(store, "a")
    start(store, "b", count=1)

    outcomes = commit(store, append("b"), append(NOBODY), append("a"))

    assert outcomes == [Outcome.STALE_SEQ, Outcome.STALE_EPOCH, Outcome.ACCEPTED]


def test_an_empty_batch_does_nothing(store: Store) -> None:
    assert commit(store) == []


def test_hundreds_of_runs_fit_into_one_batch(store: Store) -> None:
    uids = [f"{number:04}" for number in range(300)]
    commit(store, *[append(uid, count=0, create=new(uid)) for uid in uids])

    assert set(commit(store, *[append(uid, count=2) for uid in uids])) == {Outcome.ACCEPTED}
    assert {row(store, uid).seq for uid in uids} == {2}
    assert load(store, "0299").events == events(1, 2)


def test_an_append_without_events_changes_the_row_only(store: Store) -> None:
    start(store, count=1)

    assert commit(store, append(seq=1, count=0, status="held")) == ACCEPTED
    assert (row(store).status, row(store).seq, row(store).updated_at) == ("held", 1, 2_001)


def test_an_append_that_changes_nothing_is_still_judged(store: Store) -> None:
    start(store)

    assert commit(store, append(count=0)) == ACCEPTED
    assert commit(store, append(count=0, epoch=3)) == [Outcome.STALE_EPOCH]


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_terminal_append_takes_the_owner_away(store: Store, status: str) -> None:
    start(store, wake_at=99)

    finish(store, status=status)

    ended = row(store)
    assert (ended.status, ended.owner, ended.ended_at, ended.wake_at) == (status, None, 2_001, None)


def test_a_run_that_is_over_takes_no_more_events(store: Store) -> None:
    start(store)
    finish(store)

    assert commit(store, append(seq=1)) == [Outcome.STALE_EPOCH]
    assert commit(store, append(seq=1, status="running")) == [Outcome.STALE_EPOCH]
    assert row(store).status == "completed"


def test_a_run_at_rest_takes_no_more_events(store: Store) -> None:
    start(store)
    rest(store)

    assert commit(store, append()) == [Outcome.STALE_EPOCH]


def test_a_run_may_begin_and_end_in_one_append(store: Store) -> None:
    assert commit(store, append(count=2, create=new(), status="completed")) == ACCEPTED

    assert (row(store).status, row(store).seq, row(store).owner) == ("completed", 2, None)


def test_attributes_are_merged_and_none_removes(store: Store) -> None:
    start(store, attributes={"a": 1, "b": [1, 2]})

    commit(store, append(attributes={"a": None, "c": "x"}))

    assert row(store).attributes == {"b": [1, 2], "c": "x"}


def test_the_callers_objects_are_not_shared(store: Store) -> None:
    tags = ["x"]
    start(store, attributes={"tags": tags})

    tags.append("y")

    assert row(store).attributes == {"tags": ["x"]}


def test_the_owner_of_a_batch_is_asked_for_each_run(store: Store) -> None:
    start(store)
    commit(store, append(OTHER, count=0, create=new(OTHER, owner=THERE)), host=THERE)

    assert commit(store, append(), append(OTHER), host=HERE) == [Outcome.ACCEPTED, Outcome.STALE_EPOCH]


def test_the_mail_of_one_append_reaches_the_next_one_in_the_batch(store: Store) -> None:
    """Judged in order: the second would end the run without having seen what the first one sent."""
    start(store)
    start(store, OTHER)

    outcomes = commit(store, append(mail=[mail(to=OTHER)]), append(OTHER, status="completed"))

    assert outcomes == [Outcome.ACCEPTED, Outcome.MAIL_WAITING]


def test_a_writer_that_took_all_mail_may_end_the_run(store: Store) -> None:
    start(store)
    send(store, mail())

    assert commit(store, append(status="completed")) == [Outcome.MAIL_WAITING]
    assert commit(store, append(status="completed", taken=["m1"], mail_taken=1)) == ACCEPTED


def test_a_count_above_the_real_one_does_not_end_the_run_either(store: Store) -> None:
    start(store)

    assert commit(store, append(status="failed", mail_taken=1)) == [Outcome.MAIL_WAITING]


def test_waiting_mail_does_not_stop_other_appends(store: Store) -> None:
    start(store)
    send(store, mail())

    assert commit(store, append(status="paused")) == ACCEPTED


def test_an_append_that_names_nothing_else_keeps_everything_else(store: Store) -> None:
    start(store, attributes={"a": 1})
    commit(store, append(status="paused"))

    commit(store, Append(uid=RUN, epoch=row(store).epoch, seq=row(store).seq, events=events(2, 2)))

    assert (row(store).status, row(store).attributes, row(store).owner) == ("paused", {"a": 1}, HERE)
