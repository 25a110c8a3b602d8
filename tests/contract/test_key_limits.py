"""Limits per key: how many tasks and runs of a key are under way at once or begin in a time, and whose turn it is."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.contract.kit import HERE, OTHER, RUN, THERE, append, claim, commit, create, finish, go, mail, new, row, start
from tests.contract.test_pending import claimable
from tests.contract.test_tasks import held, offer, task
from weft.core.ids import Epoch, HostId, Millis
from weft.ports.store import Outcome, Store
from weft.ports.tasks import KeyLimit, LimitedKey, QueueLimits, TaskOffer, TaskStanding

STEP = "step/charge"
FLOW = "workflow/order"


def declare(store: Store, name: str = STEP, **limit: Any) -> None:
    go(store.tasks.declare({name: KeyLimit(**limit)}))


def keyed(number: int, key: str = "ann", uid: str = RUN, **fields: Any) -> TaskOffer:
    return task(number, uid, **({"limit": STEP, "key": key} | fields))


def taken(store: Store, host: HostId = THERE, *, now: int = 0, most: int = 10, queues: Any = None) -> list[int]:
    offers = go(store.tasks.take(host, queues=queues, steps=["charge"], now=Millis(now), limit=most))
    return [one.task for one in offers]


def taken_keys(store: Store, *, most: int = 10) -> Counter[str]:
    offers = go(store.tasks.take(THERE, queues=None, steps=["charge"], now=Millis(0), limit=most))
    return Counter(one.key for one in offers)


# --- tasks --------------------------------------------------------------------------------------------------------


@pytest.fixture
def _a_run(store: Store) -> None:
    start(store)


pytestmark = pytest.mark.usefixtures("_a_run")


def test_a_limited_task_is_taken_as_it_was_offered(store: Store, peer: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1))

    assert list(go(peer.tasks.take(THERE, queues=None, steps=["charge"], now=Millis(0), limit=1))) == [keyed(1)]


def test_no_more_of_a_key_are_taken_at_once_than_its_limit_whoever_takes(store: Store, peer: Store) -> None:
    declare(store, concurrency=2)
    offer(store, *(keyed(number) for number in range(1, 5)), keyed(5, "bob"))

    assert taken(store, HERE, most=1) == [1]
    assert taken(peer, THERE) == [2, 5]
    assert (taken(store, HERE), taken(peer, THERE)) == ([], [])


def test_a_task_that_ends_makes_room_for_the_next_of_its_key(store: Store, peer: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(2), keyed(3, "bob"), keyed(4, "bob"))
    assert taken(store, HERE) == [1, 3]

    go(store.tasks.finish(HERE, [keyed(1)]))
    assert taken(peer, THERE) == [2]
    assert go(store.tasks.settle(HERE, keyed(3), mail()))
    assert taken(peer, THERE) == [4]


def exchanged(
    store: Store, *offered: TaskOffer, finished: Sequence[TaskOffer] = (), most: int = 10, now: int = 0
) -> tuple[list[int], bool]:
    found = go(store.tasks.exchange(HERE, finished, offered, now=Millis(now), most=most))
    return [one.task for one in found.taken], found.is_ready


def test_a_host_takes_what_it_offers_if_the_key_has_room_and_nobody_waits_for_it(store: Store, peer: Store) -> None:
    declare(store, concurrency=2)

    assert exchanged(store, *(keyed(n) for n in (1, 2, 3)), keyed(4, "bob")) == ([1, 2, 4], False)
    assert held(store, HERE) == [(HERE, keyed(n)) for n in (1, 2)] + [(HERE, keyed(4, "bob"))]
    assert taken(peer, THERE) == []
    # One place is freed, and the task that waits for it comes first.
    assert exchanged(store, keyed(5), finished=[keyed(1)]) == ([], True)
    assert taken(peer, THERE) == [3]


def test_a_place_that_is_freed_in_the_same_exchange_is_used(store: Store) -> None:
    declare(store, concurrency=1)
    assert exchanged(store, keyed(1)) == ([1], False)

    assert exchanged(store, keyed(2), finished=[keyed(1)]) == ([2], False)
    assert exchanged(store, finished=[keyed(2)]) == ([], False)
    assert exchanged(store, finished=[keyed(2)]) == ([], False)
    assert exchanged(store, keyed(3)) == ([3], False)


def test_a_host_takes_no_more_than_it_has_slots_for(store: Store, peer: Store) -> None:
    declare(store, concurrency=9)

    assert exchanged(store, keyed(1), keyed(2), keyed(3), most=1) == ([1], True)
    assert exchanged(store, keyed(4)) == ([], True)
    assert taken(peer, THERE) == [2, 3, 4]


def test_what_a_host_takes_at_once_counts_against_the_rate(store: Store, peer: Store) -> None:
    declare(store, rate=2, per_ms=1_000)

    assert exchanged(store, keyed(1), keyed(2), keyed(3), now=5_000) == ([1, 2], True)
    assert exchanged(store, finished=[keyed(1), keyed(2)], now=5_500)[0] == []
    assert taken(peer, THERE, now=5_999) == []
    assert taken(peer, THERE, now=6_000) == [3]
    assert exchanged(store, keyed(4), keyed(5), now=6_500) == ([4], True)


def test_a_task_that_ends_is_no_reason_to_ask_for_those_that_wait_for_the_rate(store: Store, peer: Store) -> None:
    declare(store, rate=1, per_ms=1_000)
    assert exchanged(store, keyed(1), keyed(2), now=5_000) == ([1], True)
    assert taken(peer, THERE, now=5_000) == []

    assert exchanged(store, finished=[keyed(1)], now=5_500) == ([], False)
    assert exchanged(store, keyed(3), now=5_999) == ([], False)
    assert exchanged(store, keyed(4), now=6_000) == ([], True)


def test_tasks_that_are_not_due_or_in_a_queue_with_rules_of_its_own_are_only_offered(store: Store) -> None:
    declare(store, concurrency=9)
    go(store.tasks.limit("full", QueueLimits(concurrency=5)))
    go(store.tasks.limit("urgent", QueueLimits(priority=5)))

    assert exchanged(store, keyed(1, queue="full"), keyed(2, "b", queue="urgent")) == ([], True)
    assert exchanged(store, keyed(3, "c", not_before=Millis(100)), now=50) == ([], True)
    assert exchanged(store, keyed(4, "d", queue="other")) == ([4], False)
    assert taken(store, now=100) == [1, 2, 3]


def test_a_task_without_a_limit_is_only_offered(store: Store) -> None:
    assert exchanged(store, task(1)) == ([], True)
    assert taken(store) == [1]


def test_a_limit_that_is_not_declared_holds_nothing_back(store: Store) -> None:
    assert exchanged(store, keyed(1), keyed(2)) == ([1, 2], False)


def test_an_exchange_offers_nothing_of_an_earlier_epoch_and_nothing_twice(store: Store) -> None:
    declare(store, concurrency=2)
    assert exchanged(store, keyed(1)) == ([1], False)

    assert exchanged(store, keyed(1), keyed(2, epoch=Epoch(9)))[0] == []
    assert held(store, HERE) == [(HERE, keyed(1))]
    assert go(store.tasks.exchange(THERE, [keyed(1)], (), now=Millis(0), most=0)).taken == []
    assert held(store, HERE) == [(HERE, keyed(1))]


def test_a_task_that_waits_knows_what_is_under_way_and_who_is_ahead(store: Store) -> None:
    declare(store, concurrency=1)
    start(store, OTHER)
    assert exchanged(store, keyed(1), keyed(2), keyed(3, uid=OTHER), keyed(4), keyed(5, "bob"))[0] == [1, 5]

    found = go(store.tasks.standing(RUN, 4))
    assert found == TaskStanding(running=1, ahead=2, runs=[row(store, one).id for one in (RUN, RUN, OTHER)])
    assert go(store.tasks.standing(RUN, 1)) is None
    assert go(store.tasks.standing(OTHER, 9)) is None


def test_a_task_without_a_limit_per_key_stands_in_its_queue(store: Store) -> None:
    offer(store, task(1), task(2), task(3, queue="other"), task(4))
    assert taken(store, most=1) == [1]

    found = go(store.tasks.standing(RUN, 4))
    assert found == TaskStanding(running=1, ahead=1, runs=[row(store, RUN).id] * 2)


def test_only_the_host_that_has_a_task_can_finish_it(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(2))
    assert taken(store, HERE) == [1]

    go(store.tasks.finish(THERE, [keyed(1), keyed(2)]))

    assert taken(store, THERE) == []
    assert [one.task for one in go(store.tasks.rows(keyed(1).uid))] == [1, 2]


def test_finishing_twice_frees_one_place(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(2), keyed(3))
    assert taken(store, HERE) == [1]

    go(store.tasks.finish(HERE, [keyed(1), keyed(1)]))
    go(store.tasks.finish(HERE, [keyed(1)]))

    assert taken(store, HERE) == [2]
    assert taken(store, HERE) == []


def test_a_task_that_is_offered_twice_counts_once(store: Store) -> None:
    declare(store, concurrency=2)
    offer(store, keyed(1))
    assert taken(store) == [1]
    offer(store, keyed(1), keyed(2))

    assert taken(store) == [2]


def test_a_waiting_task_that_is_withdrawn_is_gone(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(2), keyed(3))
    assert taken(store) == [1]

    go(store.tasks.withdraw(keyed(2).uid, [2]))
    go(store.tasks.finish(THERE, [keyed(1)]))

    assert taken(store) == [3]


def test_a_task_that_is_withdrawn_while_it_runs_counts_until_its_host_has_stopped_it(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(2))
    assert taken(store, HERE) == [1]

    go(store.tasks.withdraw(keyed(1).uid, [1]))
    assert taken(store, THERE) == []
    assert held(store, HERE) == [(HERE, keyed(1, unwanted=True))]
    assert [one.task for one in go(store.tasks.rows(keyed(1).uid))] == [2]

    go(store.tasks.finish(HERE, [keyed(1)]))
    assert taken(store, THERE) == [2]


def test_a_withdrawn_task_may_be_offered_again_while_it_still_counts(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1))
    assert taken(store, HERE) == [1]
    go(store.tasks.withdraw(keyed(1).uid, [1]))

    offer(store, keyed(1))
    assert taken(store, THERE) == []
    go(store.tasks.finish(HERE, [keyed(1)]))
    assert taken(store, THERE) == [1]


def test_a_task_counts_after_the_end_of_its_run_until_its_host_has_stopped_it(store: Store) -> None:
    start(store, OTHER)
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(1, uid=OTHER))
    assert len(taken(store, HERE)) == 1

    finish(store)
    assert taken(store, THERE) == []
    assert [one.unwanted for _, one in held(store, HERE)] == [True]

    go(store.tasks.finish(HERE, [keyed(1)]))
    assert taken(store, THERE) == [1]


def test_waiting_tasks_of_a_run_that_ends_are_gone(store: Store) -> None:
    start(store, OTHER)
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(2), keyed(1, uid=OTHER, key="bob"))
    assert taken(store, HERE) == [1, 1]

    finish(store)

    left = [(HERE, keyed(1, unwanted=True)), (HERE, keyed(1, uid=OTHER, key="bob"))]
    assert sorted(held(store, HERE), key=lambda one: one[1].uid) == left


def test_after_a_retry_a_task_that_still_runs_is_not_the_run_s(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1))
    assert taken(store, HERE) == [1]
    finish(store, status="failed")
    again = append(seq=1, status="running", reopen=Millis(1))
    assert commit(store, again, host=THERE) == [Outcome.ACCEPTED]
    claim(store, epoch=1)

    assert go(store.tasks.rows(keyed(1).uid)) == []
    offer(store, keyed(1, epoch=Epoch(2)))
    assert taken(store, THERE) == []
    go(store.tasks.finish(HERE, [keyed(1)]))
    assert taken(store, THERE) == [1]


def test_no_more_of_a_key_begin_in_any_period_than_its_rate(store: Store, peer: Store) -> None:
    declare(store, rate=3, per_ms=1_000)
    offer(store, *(keyed(number) for number in range(1, 9)), keyed(9, "bob"))

    assert taken(store, now=10_000, most=2) == [1, 9]
    assert taken(store, now=10_000, most=1) == [2]
    assert taken(peer, now=10_600) == [3]
    assert taken(store, now=10_999) == []
    assert taken(peer, now=11_000) == [4, 5]
    assert taken(store, now=11_599) == []
    assert taken(store, now=11_600) == [6]


def test_a_task_that_ends_gives_nothing_of_a_rate_back(store: Store) -> None:
    declare(store, rate=1, per_ms=1_000)
    offer(store, keyed(1), keyed(2))
    assert taken(store, HERE, now=10_000) == [1]
    go(store.tasks.finish(HERE, [keyed(1)]))

    assert taken(store, HERE, now=10_999) == []
    assert taken(store, HERE, now=11_000) == [2]


def test_a_high_rate_is_never_exceeded_in_any_period(store: Store) -> None:
    declare(store, rate=100, per_ms=1_000)
    offer(store, *(keyed(number) for number in range(1, 301)))

    starts = [now for now in range(10_000, 13_000, 7) for _ in taken(store, now=now, most=30)]

    assert len(starts) == 300
    assert max(sum(1 for at in starts if since <= at < since + 1_000) for since in starts) == 100


def test_both_limits_of_a_key_hold(store: Store) -> None:
    declare(store, concurrency=1, rate=2, per_ms=1_000)
    offer(store, *(keyed(number) for number in range(1, 5)))

    for number in (1, 2):
        assert taken(store, now=10_000) == [number]
        go(store.tasks.finish(THERE, [keyed(number)]))
    assert taken(store, now=10_500) == []
    assert taken(store, now=11_000) == [3]
    assert taken(store, now=11_000) == []


def test_keys_take_turns_however_many_tasks_of_one_wait(store: Store) -> None:
    declare(store, concurrency=100)
    offer(store, *(keyed(number) for number in range(1, 50)))
    offer(store, keyed(50, "bob"), keyed(51, "cat"), keyed(52, "cat"))

    assert taken_keys(store, most=3) == {"ann": 1, "bob": 1, "cat": 1}
    assert taken_keys(store, most=2) == {"ann": 1, "cat": 1}
    assert taken_keys(store, most=6) == {"ann": 6}


def test_with_one_free_slot_the_key_that_had_its_turn_goes_to_the_end(store: Store) -> None:
    declare(store, concurrency=100)
    offer(store, keyed(1), keyed(2), keyed(3), keyed(4, "bob"), keyed(5, "bob"), keyed(6, "cat"))

    order = [number for turn in range(12) for number in taken(store, now=turn, most=1)]

    assert order == [1, 4, 6, 2, 5, 3]


def test_a_key_that_is_full_holds_nobody_up(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, *(keyed(number, f"key {number % 3}") for number in range(30)))
    assert sum(taken_keys(store).values()) == 3

    offer(store, keyed(31, "late"))

    assert taken(store, most=1) + taken(store, most=1) == [31]


def test_tasks_without_limits_and_limited_ones_share_a_host(store: Store) -> None:
    declare(store, concurrency=100)
    offer(store, *(keyed(number, f"key {number}") for number in range(1, 11)))
    offer(store, *(task(number) for number in range(11, 21)))

    both = taken(store, most=10)

    assert len([number for number in both if number <= 10]) == 5
    one_by_one = [number for turn in range(4) for number in taken(store, now=turn, most=1)]
    assert len([number for number in one_by_one if number <= 10]) == 2


def test_the_limit_of_the_queue_holds_too(store: Store) -> None:
    declare(store, concurrency=2)
    go(store.tasks.limit("mail", QueueLimits(concurrency=3)))
    offer(store, *(keyed(number, f"key {number % 4}", queue="mail") for number in range(1, 9)), keyed(9, "other"))

    assert len(taken(store)) == 4
    assert taken(store) == []
    assert len(taken(store, queues=["mail"])) == 0
    go(store.tasks.finish(THERE, [keyed(1, "key 1", queue="mail")]))
    assert len(taken(store, queues=["mail"])) == 1


def test_a_queue_of_higher_priority_comes_first_among_limited_tasks(store: Store) -> None:
    declare(store, concurrency=9)
    go(store.tasks.limit("urgent", QueueLimits(priority=5)))
    offer(store, keyed(1), keyed(2, "bob", queue="urgent"), keyed(3, "cat", queue="mail"))

    assert taken(store, most=1, now=1) == [2]
    assert taken(store) == [1, 3]


def test_a_host_takes_limited_tasks_only_of_its_queues_and_steps(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1, queue="mail"), keyed(2, "bob", step="ship", limit="step/ship"), keyed(3, "cat"))

    assert taken(store, queues=["default"]) == [3]
    assert taken(store, queues=[]) == []
    assert taken(store, queues=["mail", "default"]) == [1]


def test_a_limited_task_is_not_taken_before_its_time(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1, not_before=Millis(500)))

    assert taken(store, now=499) == []
    assert taken(store, now=500) == [1]


def test_a_limit_that_is_raised_lets_more_begin(store: Store, peer: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(2), keyed(3), keyed(4))
    assert taken(store) == [1]

    declare(peer, concurrency=2)
    assert taken(store) == [2]
    go(peer.tasks.declare({STEP: None}))
    assert taken(store) == [3, 4]
    assert go(store.tasks.declared()) == {}


def test_limits_are_given_back_as_they_were_declared(store: Store, peer: Store) -> None:
    limit = KeyLimit(concurrency=3, rate=10, per_ms=60_000, key="customer.id", defaults={"customer": None})
    go(store.tasks.declare({STEP: limit, FLOW: KeyLimit(rate=1, by_code=True)}))

    assert go(peer.tasks.declared()) == {STEP: limit, FLOW: KeyLimit(rate=1, by_code=True)}


def test_people_see_the_keys_with_the_most_waiting_first(store: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(2), keyed(3), keyed(4, "bob"), keyed(5, "bob"), keyed(6, "cat"), task(7))
    taken(store)

    rows = go(store.tasks.limited_keys(limit=10))
    assert [row.since is None for row in rows] == [False, False, True]
    assert [(row.limit, row.key, row.waiting, row.running) for row in rows] == [
        (STEP, "ann", 2, 1),
        (STEP, "bob", 1, 1),
        (STEP, "cat", 0, 1),
    ]
    assert len(go(store.tasks.limited_keys(limit=1))) == 1


def test_a_task_of_a_host_that_is_gone_is_settled_for_it_and_its_place_is_free(store: Store, peer: Store) -> None:
    declare(store, concurrency=1)
    offer(store, keyed(1), keyed(2))
    assert taken(store, HERE) == [1]
    go(peer.hosts.join(THERE, lease_ms=1_000))
    assert HERE in go(peer.hosts.find_dead(monotonic=0.0))

    ((_, lost),) = held(peer, HERE)
    assert go(peer.tasks.settle(HERE, lost, mail()))

    assert taken(peer, THERE) == [2]


# --- runs ---------------------------------------------------------------------------------------------------------


def waiting_run(store: Store, uid: str, host: HostId = HERE) -> None:
    assert create(store, new(uid, owner=None, start=b'{"go":1}')) == [Outcome.ACCEPTED]
    assert len(claim(store, uid, host=host)) == 1


def admit(store: Store, uid: str, key: str = "ann", *, host: HostId = HERE, now: int = 0, epoch: int = 1) -> bool:
    place = task(0, uid, attempt=0, delivery=0, step="order", queue="", limit=FLOW, key=key, epoch=Epoch(epoch))
    return go(store.tasks.admit(host, place, Millis(now)))


def let_begin(store: Store, now: int = 0) -> list[str]:
    go(store.tasks.admit_waiting(Millis(now), limit=10))
    return claimable(store, ("order", "1"))


def test_a_run_over_the_limit_waits_without_an_owner_until_another_ends(store: Store, peer: Store) -> None:
    declare(store, FLOW, concurrency=1)
    for uid in ("a", "b", "c"):
        waiting_run(store, uid)

    assert [admit(store, "a"), admit(store, "b"), admit(store, "c", "bob")] == [True, False, True]
    assert (row(store, "b").owner, row(store, "b").status) == (None, "pending")
    assert let_begin(peer) == []

    assert commit(store, append("a", taken=["start"], status="completed", mail_taken=1)) == [Outcome.ACCEPTED]
    assert let_begin(peer) == ["b"]
    assert len(claim(peer, "b", epoch=1, host=THERE)) == 1
    assert admit(peer, "b", host=THERE, epoch=2)


def test_a_run_that_was_admitted_stays_so_whoever_claims_it(store: Store) -> None:
    declare(store, FLOW, concurrency=1)
    waiting_run(store, "a")
    assert admit(store, "a")
    assert admit(store, "a")
    claim(store, "a", epoch=1, host=THERE)

    assert admit(store, "a", host=THERE, epoch=2)
    assert go(store.hosts.find_dead(monotonic=0.0)) == [HERE, THERE]


def test_a_host_that_has_lost_a_run_cannot_admit_it(store: Store) -> None:
    declare(store, FLOW, concurrency=1)
    waiting_run(store, "a")
    claim(store, "a", epoch=1, host=THERE)

    assert not admit(store, "a")
    assert row(store, "a").owner == THERE


def test_runs_begin_in_the_order_in_which_they_came_and_keys_take_turns(store: Store) -> None:
    declare(store, FLOW, rate=1, per_ms=1_000)
    for uid, key in (("a", "ann"), ("b", "ann"), ("c", "ann"), ("d", "bob"), ("e", "bob")):
        waiting_run(store, uid)
        admit(store, uid, key, now=10_000)

    assert let_begin(store, 10_999) == []
    assert let_begin(store, 11_000) == ["b", "e"]
    assert let_begin(store, 11_500) == ["b", "e"]
    assert let_begin(store, 12_000) == ["b", "c", "e"]


def test_a_waiting_run_that_is_cancelled_makes_way(store: Store) -> None:
    declare(store, FLOW, concurrency=1)
    for uid in ("a", "b", "c"):
        waiting_run(store, uid)
    assert [admit(store, uid) for uid in ("a", "b", "c")] == [True, False, False]

    claim(store, "b", epoch=1)
    gone = append("b", epoch=2, taken=["start"], status="cancelled", mail_taken=1)
    assert commit(store, gone) == [Outcome.ACCEPTED]
    assert commit(store, append("a", taken=["start"], status="failed", mail_taken=1)) == [Outcome.ACCEPTED]

    assert let_begin(store) == ["c"]


def test_the_place_of_a_run_is_no_task(store: Store) -> None:
    declare(store, FLOW, concurrency=1)
    for uid in ("a", "b"):
        waiting_run(store, uid)
        admit(store, uid)

    assert [row.queue for row in go(store.tasks.queues())] == []
    assert go(store.tasks.rows(new("a").uid)) == []
    assert go(store.tasks.take(THERE, queues=None, steps=["order"], now=Millis(0), limit=10)) == []
    assert go(store.tasks.limited_keys(limit=10))[0] == LimitedKey(
        limit=FLOW, key="ann", waiting=1, running=1, since=go(store.tasks.limited_keys(limit=10))[0].since
    )
