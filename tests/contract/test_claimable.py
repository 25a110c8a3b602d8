"""Which runs wait for somebody to work on them, and in which order."""

from typing import Any

import msgspec
import pytest

from tests.contract.kit import (
    FLOW,
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
    go,
    mail,
    new,
    rest,
    row,
    send,
    start,
)
from weft.core.ids import HostId, Millis
from weft.ports.store import NEVER, Sent, Store


def claimable(
    store: Store, *workflows: tuple[str, str], dead: tuple[HostId, ...] = (), now: int = 0, limit: int = 100
) -> list[str]:
    found = go(store.directory.claimable(workflows or [FLOW], dead=dead, now=Millis(now), limit=limit))
    return [one.uid for one in found]


def at_rest(store: Store, uid: str = RUN, **fields: Any) -> None:
    start(store, uid)
    rest(store, uid, **fields)


def next_wake(store: Store, *workflows: tuple[str, str], dead: tuple[HostId, ...] = ()) -> int | None:
    return go(store.directory.next_wake(workflows or [FLOW], dead=dead))


def test_a_run_of_a_living_owner_is_not_claimable(store: Store) -> None:
    start(store)
    send(store, mail())

    assert claimable(store, dead=(THERE,), now=10**15) == []


def test_a_run_of_a_dead_owner_is_claimable(store: Store) -> None:
    start(store)

    assert claimable(store, dead=(HERE,)) == [RUN]


def test_the_row_tells_the_epoch_to_claim_at(store: Store) -> None:
    start(store)
    (found,) = go(store.directory.claimable([FLOW], dead=[HERE], now=Millis(0), limit=1))

    assert found == row(store)
    assert claim(store, epoch=found.epoch, host=THERE)
    assert claimable(store, dead=(HERE,)) == []


def test_a_run_at_rest_is_claimable_when_it_is_due(store: Store) -> None:
    at_rest(store, wake_at=5_000)

    assert (claimable(store, now=4_999), claimable(store, now=5_000)) == ([], [RUN])


def test_a_run_at_rest_is_claimable_when_it_has_mail(store: Store) -> None:
    at_rest(store)
    assert claimable(store, now=10**15) == []

    send(store, mail())

    assert claimable(store) == [RUN]


def test_a_new_run_with_start_mail_is_claimable(store: Store) -> None:
    create(store, new(owner=None, start=b"1"))

    assert claimable(store) == [RUN]


def test_a_new_run_that_is_to_start_later_is_claimable_then(store: Store) -> None:
    create(store, new(owner=None, wake_at=7_000))

    assert (claimable(store, now=6_999), claimable(store, now=7_000)) == ([], [RUN])


def test_a_start_that_was_put_off_can_be_claimed_before_its_time_once(store: Store, peer: Store) -> None:
    create(store, new(owner=None, start=b"1", wake_at=7_000))

    (claimed,) = claim(store)

    assert (claimed.owner, claimed.epoch, claimed.wake_at) == (HERE, 1, None)
    assert (claim(peer, host=THERE), claimable(peer, now=7_000), next_wake(peer)) == ([], [], None)


def test_mail_brings_a_start_that_was_put_off_forward_only_if_it_is_urgent(store: Store, peer: Store) -> None:
    create(store, new(owner=None, start=b"1", wake_at=7_000))
    send(store, mail("m1"))
    assert (claimable(store, now=6_999), next_wake(store)) == ([], 7_000)

    urgent = msgspec.structs.replace(mail("m2"), urgent=True)
    assert send(store, urgent) == [Sent.ACCEPTED]

    assert (claimable(peer, now=0), next_wake(peer)) == ([RUN], None)
    assert [(one.id, one.urgent) for one in go(store.log.inbox(RUN))][1:] == [("m1", False), ("m2", False)]
    assert send(store, urgent) == [Sent.DUPLICATE]


def test_urgent_mail_leaves_the_timers_of_a_run_that_has_begun_alone(store: Store) -> None:
    start(store, count=1)
    rest(store, seq=1, wake_at=7_000)

    send(store, msgspec.structs.replace(mail(), urgent=True))

    assert (next_wake(store), row(store).wake_at) == (7_000, 7_000)


def test_a_run_that_is_due_and_has_mail_is_listed_once(store: Store) -> None:
    at_rest(store, wake_at=1)
    send(store, mail())

    assert claimable(store, now=2) == [RUN]


def test_only_the_wanted_workflows_and_versions_are_claimable(store: Store) -> None:
    for uid, workflow, version in (("a", "order", "1"), ("b", "order", "2"), ("c", "refund", "1")):
        create(store, new(uid, owner=None, workflow=workflow, version=version, start=b"1"))

    assert claimable(store, ("order", "2")) == ["b"]
    assert claimable(store, ("order", "1"), ("refund", "1")) == ["a", "c"]
    assert claimable(store, ("order", "refund")) == []
    assert go(store.directory.claimable([], dead=[], now=Millis(0), limit=9)) == []


def test_runs_of_others_do_not_fill_the_page(store: Store) -> None:
    """A first page of what nobody here can take would hide the rest for ever."""
    create(store, *[new(f"a{n}", owner=None, workflow="foreign", start=b"1", created_at=n) for n in range(5)])
    create(store, new("mine", owner=None, start=b"1", created_at=99))

    assert claimable(store, limit=1) == ["mine"]


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_run_that_is_over_is_not_claimable(store: Store, status: str) -> None:
    start(store)
    finish(store, status=status)

    assert claimable(store, dead=(HERE,), now=10**15) == []


@pytest.mark.parametrize("status", ["paused", "cancelling", "rolling_back"])
def test_open_runs_of_other_statuses_are_claimable(store: Store, status: str) -> None:
    start(store)
    commit(store, append(status=status))

    assert claimable(store, dead=(HERE,)) == [RUN]


def test_a_held_run_waits_for_mail(store: Store) -> None:
    start(store)
    commit(store, append(status="held"))
    at_rest(store, OTHER, wake_at=1)
    claim(store, OTHER, epoch=1)
    commit(store, append(OTHER, epoch=2, status="held"))
    rest(store, OTHER, seq=1, epoch=2, wake_at=1)
    assert claimable(store, dead=(HERE,), now=10) == []

    send(store, mail(to=RUN, at=4), mail(to=OTHER, at=3))

    assert set(claimable(store, dead=(HERE,), now=10)) == {RUN, OTHER}


def test_a_run_with_a_fault_is_left_out(store: Store) -> None:
    start(store)
    at_rest(store, OTHER, wake_at=1)
    send(store, mail(to=OTHER))
    for uid in (RUN, OTHER):
        go(store.log.mark_fault(uid, "damaged"))
    assert claimable(store, dead=(HERE,), now=10) == []

    go(store.log.mark_fault(OTHER, None))

    assert claimable(store, dead=(HERE,), now=10) == [OTHER]


def test_those_who_wait_longest_come_first(store: Store) -> None:
    """Whatever they wait for: due since 20, mail since 10, a dead owner since 30."""
    at_rest(store, "due", wake_at=20)
    at_rest(store, "mail")
    send(store, mail(to="mail", at=10))
    start(store, "orphan")
    commit(store, append("orphan", events=[event(1, at=30)]))

    assert claimable(store, dead=(HERE,), now=99) == ["mail", "due", "orphan"]


def test_the_oldest_reason_counts(store: Store) -> None:
    at_rest(store, "a", wake_at=20)
    at_rest(store, "b", wake_at=30)
    send(store, mail(to="b", at=10))

    assert claimable(store, now=99) == ["b", "a"]


def test_a_limit_takes_the_first_of_all_reasons(store: Store) -> None:
    for number in range(4):
        at_rest(store, f"due {number}", wake_at=10 + number)
        at_rest(store, f"mail {number}")
        send(store, mail(to=f"mail {number}", at=10 + number))

    assert set(claimable(store, now=99, limit=4)) == {"due 0", "mail 0", "due 1", "mail 1"}


def test_claiming_page_by_page_reaches_every_run(store: Store) -> None:
    create(store, *[new(f"{n}", owner=None, start=b"1", created_at=n) for n in range(7)])
    seen: list[str] = []
    while page := claimable(store, limit=3):
        for uid in page:
            assert claim(store, uid)
        seen += page

    assert seen == [f"{n}" for n in range(7)]


def test_the_next_wake_is_the_earliest_of_those_at_rest(store: Store) -> None:
    assert next_wake(store) is None
    at_rest(store, "a", wake_at=300)
    at_rest(store, "b", wake_at=200)
    at_rest(store, "c")
    start(store, "owned", wake_at=100)

    assert next_wake(store) == 200


def test_the_next_wake_is_of_the_wanted_workflows(store: Store) -> None:
    create(store, new("a", owner=None, workflow="foreign", wake_at=1), new("b", owner=None, wake_at=2))

    assert (next_wake(store), next_wake(store, ("foreign", "1")), next_wake(store, ("order", "9"))) == (2, 1, None)


def test_what_cannot_be_claimed_wakes_nobody(store: Store) -> None:
    """Otherwise whoever sleeps until the next wake would never sleep."""
    start(store, "held")
    commit(store, append("held", status="held"))
    rest(store, "held", seq=1, wake_at=5)
    at_rest(store, "faulty", wake_at=6)
    go(store.log.mark_fault(row(store, "faulty").uid, "damaged"))
    at_rest(store, "fine", wake_at=7)

    assert next_wake(store) == 7


# --- what only waits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2])
def test_a_run_of_a_dead_owner_that_only_waits_is_left_alone_until_it_is_due(store: Store, batch: int) -> None:
    start(store)
    start(store, OTHER)
    commit(store, *[append(idle_until=Millis(5_000)), append(OTHER, idle_until=Millis(5_000))][:batch])

    waiting = [RUN, OTHER][:batch]
    assert row(store).idle_until == 5_000
    assert not set(waiting) & set(claimable(store, dead=(HERE,), now=4_999))
    assert set(claimable(store, dead=(HERE,), now=5_000)) == {RUN, OTHER}
    assert claimable(store, now=5_000) == []


def test_an_append_that_says_nothing_of_it_leaves_it_as_it_was(store: Store) -> None:
    start(store)
    commit(store, append(idle_until=NEVER))
    commit(store, append(seq=1))

    assert row(store).idle_until == NEVER
    assert claimable(store, dead=(HERE,), now=10**15) == []


def test_work_in_flight_makes_it_claimable_again(store: Store) -> None:
    start(store)
    commit(store, append(idle_until=NEVER))
    commit(store, append(seq=1, idle_until=None))

    assert row(store).idle_until is None
    assert claimable(store, dead=(HERE,)) == [RUN]


def test_mail_makes_a_waiting_run_of_a_dead_owner_claimable(store: Store) -> None:
    start(store)
    commit(store, append(idle_until=NEVER))
    send(store, mail())

    assert claimable(store, dead=(HERE,)) == [RUN]


def test_a_run_can_be_made_waiting(store: Store) -> None:
    commit(store, append(create=new(), status="running", idle_until=Millis(7)))
    commit(store, append(OTHER, create=new(OTHER), status="running", idle_until=NEVER, attributes={"a": 1}))

    assert (row(store).idle_until, row(store, OTHER).idle_until) == (7, NEVER)
    assert claimable(store, dead=(HERE,), now=6) == []
    assert claimable(store, dead=(HERE,), now=7) == [RUN]


def test_an_append_with_more_than_events_can_say_it_too(store: Store) -> None:
    start(store)
    commit(store, append(idle_until=NEVER, attributes={"a": 1}))

    assert claimable(store, dead=(HERE,), now=10**15) == []


def test_a_claim_keeps_it_and_a_run_that_is_opened_again_has_work(store: Store) -> None:
    start(store)
    commit(store, append(idle_until=NEVER))
    assert claim(store, epoch=1, host=THERE)[0].idle_until == NEVER
    assert claimable(store, dead=(THERE,), now=10**15) == []

    commit(store, append(seq=1, epoch=2, status="failed"), host=THERE)
    commit(store, append(seq=2, epoch=2, status="running", reopen=Millis(1)))
    assert claim(store, epoch=2, host=THERE)[0].idle_until is None
    assert claimable(store, dead=(THERE,)) == [RUN]


def test_the_next_wake_is_that_of_the_dead_too(store: Store) -> None:
    start(store)
    commit(store, append(idle_until=Millis(7_000)))
    assert (next_wake(store), next_wake(store, dead=(HERE, THERE))) == (None, 7_000)

    start(store, OTHER)
    commit(store, append(OTHER, idle_until=NEVER))
    at_rest(store, "resting", wake_at=8_000)
    assert (next_wake(store), next_wake(store, dead=(HERE,))) == (8_000, 7_000)
