"""Queues: which tasks come first, and how many may be in hands, whoever asks."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.contract.kit import HERE, THERE, go, mail, start
from tests.contract.test_tasks import offer, take, task
from weft.core.ids import HostId, Millis
from weft.ports.store import Store
from weft.ports.tasks import QueueLimits, QueueRow

QUEUES = ("default", "mail", "urgent")


@pytest.fixture(autouse=True)
def _a_run(store: Store) -> None:
    start(store)


def limit(store: Store, queue: str = "default", **limits: Any) -> None:
    go(store.tasks.limit(queue, QueueLimits(**limits)))


def taken(store: Store, host: HostId = THERE, *, now: int = 0, most: int = 10) -> list[int]:
    return [one.task for one in take(store, host, queues=QUEUES, now=Millis(now), limit=most)]


def queues(store: Store) -> Sequence[QueueRow]:
    return list(go(store.tasks.queues()))


def test_no_more_are_in_hands_than_a_queue_allows_whoever_takes(store: Store, peer: Store) -> None:
    limit(store, concurrency=2)
    offer(store, *(task(number) for number in range(1, 5)))

    assert taken(store, HERE, most=1) == [1]
    assert taken(peer, THERE) == [2]
    assert (taken(store, HERE), taken(peer, THERE)) == ([], [])


def test_a_task_that_is_settled_makes_room_for_the_next(store: Store, peer: Store) -> None:
    limit(store, concurrency=1)
    offer(store, task(1), task(2))
    assert taken(store, HERE) == [1]

    assert go(store.tasks.settle(HERE, task(1), mail()))

    assert taken(peer, THERE) == [2]


def test_a_task_that_is_withdrawn_makes_room_for_the_next(store: Store) -> None:
    limit(store, concurrency=1)
    offer(store, task(1), task(2))
    assert taken(store, HERE) == [1]

    go(store.tasks.withdraw(task(1).uid, [1]))

    assert taken(store, THERE) == [2]


def test_no_more_are_handed_out_in_any_stretch_of_time_than_the_rate_says(store: Store, peer: Store) -> None:
    limit(store, rate=3, per_ms=1_000)
    offer(store, *(task(number) for number in range(1, 9)))

    assert taken(store, now=10_000, most=2) == [1, 2]
    assert taken(peer, now=10_600) == [3]
    assert taken(store, now=10_999) == []
    assert taken(peer, now=11_000) == [4, 5]
    assert taken(store, now=11_599) == []
    assert taken(store, now=11_600) == [6]


def test_settling_gives_no_task_of_a_rate_back(store: Store) -> None:
    limit(store, rate=1, per_ms=1_000)
    offer(store, task(1), task(2))
    assert taken(store, HERE, now=10_000) == [1]
    go(store.tasks.settle(HERE, task(1), mail()))

    assert taken(store, HERE, now=10_500) == []


def test_the_stricter_of_two_limits_holds(store: Store) -> None:
    limit(store, rate=5, concurrency=2)
    offer(store, *(task(number) for number in range(1, 5)))

    assert taken(store) == [1, 2]


def test_the_limits_of_one_queue_are_no_limits_of_another(store: Store) -> None:
    limit(store, "mail", concurrency=1)
    offer(store, task(1, queue="mail"), task(2, queue="mail"), task(3), task(4))

    assert taken(store) == [1, 3, 4]


def test_a_queue_of_higher_priority_comes_first(store: Store) -> None:
    limit(store, "urgent", priority=5)
    offer(store, task(1), task(2, queue="urgent"), task(3, queue="mail"), task(4, queue="urgent"))

    assert taken(store, most=1) == [2]
    assert taken(store, most=2) == [1, 4]
    assert taken(store) == [3]


def test_a_queue_of_lower_priority_comes_last(store: Store) -> None:
    limit(store, "mail", priority=-1)
    offer(store, task(1, queue="mail"), task(2))

    assert taken(store, most=1) == [2]


def test_of_queues_of_one_priority_the_oldest_task_comes_first_with_limits_or_without(store: Store) -> None:
    limit(store, "mail", concurrency=5)
    offer(store, task(1), task(2, queue="mail"), task(3), task(4, queue="mail"))

    assert taken(store, most=3) == [1, 2, 3]


def test_a_step_that_nobody_here_has_uses_up_no_room(store: Store) -> None:
    limit(store, concurrency=1)
    offer(store, task(1, step="other"), task(2))

    assert taken(store) == [2]


def test_limits_can_be_changed_and_taken_away(store: Store, peer: Store) -> None:
    limit(store, concurrency=1)
    offer(store, *(task(number) for number in range(1, 5)))
    assert taken(store) == [1]

    limit(peer, concurrency=2, rate=100)
    assert taken(store) == [2]
    go(peer.tasks.limit("default", None))

    assert taken(store) == [3, 4]
    assert go(store.tasks.limits()) == {}


def test_less_room_than_is_taken_up_is_no_room(store: Store) -> None:
    offer(store, task(1), task(2), task(3))
    assert taken(store, most=2) == [1, 2]

    limit(store, concurrency=1)

    assert taken(store) == []


def test_limits_are_given_back_as_they_were_set(store: Store, peer: Store) -> None:
    limit(store, "mail", concurrency=3, rate=10, per_ms=60_000, priority=7)
    limit(store, "urgent", priority=1)

    assert go(peer.tasks.limits()) == {
        "mail": QueueLimits(concurrency=3, rate=10, per_ms=60_000, priority=7),
        "urgent": QueueLimits(priority=1),
    }


def test_people_see_how_long_a_queue_is_and_what_is_in_hands(store: Store) -> None:
    limit(store, "mail", concurrency=1)
    limit(store, "empty", rate=1)
    offer(store, task(1, queue="mail"), task(2, queue="mail"), task(3))
    taken(store)

    found = queues(store)
    assert [row.since is None for row in found] == [True, True, False]
    assert [msgspec.structs.replace(row, since=None) for row in found] == [
        QueueRow(queue="default", waiting=0, running=1, limits=QueueLimits()),
        QueueRow(queue="empty", waiting=0, running=0, limits=QueueLimits(rate=1)),
        QueueRow(queue="mail", waiting=1, running=1, limits=QueueLimits(concurrency=1)),
    ]


def test_a_task_waits_since_it_was_offered_or_due(store: Store) -> None:
    offer(store, task(1, not_before=Millis(2**50)))

    (row,) = queues(store)
    assert row.since == 2**50
