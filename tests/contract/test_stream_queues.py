"""Queues that are streams: only the streams take their tasks, no host is dead because of it, and limits hold."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests import scale
from tests.contract.kit import HERE, RUN, THERE, go, inbox, mail, start
from tests.contract.test_tasks import held, offer, task
from weft.core.ids import HostId, Millis
from weft.ports.store import Store
from weft.ports.tasks import STREAM, KeyLimit, QueueLimits, TaskOffer


@pytest.fixture(autouse=True)
def _a_run(store: Store) -> None:
    start(store)
    go(store.tasks.limit("gpu", QueueLimits(stream=True)))


def publish(store: Store, **fields: Any) -> Sequence[TaskOffer]:
    values: dict[str, Any] = {"queues": ["gpu"], "steps": None, "now": Millis(0), "limit": 10}
    return list(go(store.tasks.take(STREAM, **(values | fields))))


def taken(store: Store, host: HostId, queues: Sequence[str] | None) -> list[int]:
    offers = go(store.tasks.take(host, queues=queues, steps=["charge", "draw"], now=Millis(0), limit=10))
    return [one.task for one in offers]


def test_a_queue_is_a_stream_until_it_is_none(store: Store, peer: Store) -> None:
    assert go(peer.tasks.limits()) == {"gpu": QueueLimits(stream=True)}
    assert [(row.queue, row.limits.stream) for row in go(peer.tasks.queues())] == [("gpu", True)]

    go(peer.tasks.limit("gpu", None))

    assert go(store.tasks.limits()) == {}


def test_hosts_leave_the_tasks_of_a_stream_alone_whatever_they_ask_for(store: Store) -> None:
    offer(store, task(1, queue="gpu"), task(2))

    assert taken(store, THERE, ["gpu"]) == []
    assert taken(store, THERE, None) == [2]
    assert taken(store, HERE, ["gpu", "default"]) == []


def test_streams_take_tasks_of_any_step_and_of_no_other_queue(store: Store) -> None:
    offer(store, task(1, queue="gpu"), task(2), task(3, queue="gpu", step="draw"))

    assert [one.task for one in publish(store, queues=["gpu", "default"])] == [1, 3]
    assert publish(store) == []


def test_tasks_with_a_limit_per_key_are_published_within_it(store: Store) -> None:
    go(store.tasks.declare({"step/charge": KeyLimit(concurrency=1), "step/draw": KeyLimit(concurrency=1)}))
    keyed = [
        task(number, queue=queue, step=step, limit=f"step/{step}", key="k")
        for number, queue, step in [(1, "gpu", "charge"), (2, "gpu", "charge"), (3, "default", "draw")]
    ]
    offer(store, *keyed)

    assert [one.task for one in publish(store)] == [1]
    assert publish(store) == []
    assert taken(store, THERE, None) == [3]


def test_what_is_offered_to_a_stream_is_not_begun_at_once(store: Store) -> None:
    go(store.tasks.declare({"step/charge": KeyLimit(concurrency=1)}))
    keyed = task(1, queue="gpu", limit="step/charge", key="k")

    exchanged = go(store.tasks.exchange(HERE, [], [keyed], now=Millis(0), most=1))

    assert list(exchanged.taken) == []
    assert [one.task for one in publish(store)] == [1]


def test_the_limits_of_a_stream_hold(store: Store) -> None:
    go(store.tasks.limit("gpu", QueueLimits(stream=True, concurrency=2)))
    offer(store, *(task(number, queue="gpu") for number in range(1, 4)))

    assert [one.task for one in publish(store)] == [1, 2]
    assert publish(store) == []


@pytest.mark.parametrize(
    "make", scale.first(2, ["postgres", "sqlite", "memory", "hot-memory", "hot-postgres"]), indirect=True
)
def test_no_more_than_ten_thousand_tasks_are_published(store: Store) -> None:
    offer(store, *(task(number, queue="gpu", body=b"{}") for number in range(1, 10_003)))

    assert len(publish(store, limit=20_000)) == 10_000
    assert publish(store) == []
    assert go(store.tasks.settle(STREAM, task(1, queue="gpu"), mail()))
    assert [one.task for one in publish(store)] == [10_001]


def test_nobody_is_dead_because_tasks_are_published(store: Store, peer: Store) -> None:
    offer(store, task(1, queue="gpu"))
    publish(store)

    assert STREAM not in go(peer.hosts.find_dead(monotonic=0.0))
    assert STREAM not in go(peer.hosts.find_dead(monotonic=1_000.0))
    assert [host for host, _ in held(peer, STREAM)] == [STREAM]


def test_a_published_task_is_settled_in_the_name_of_the_streams(store: Store) -> None:
    offer(store, task(1, queue="gpu"))
    publish(store)

    assert not go(store.tasks.settle(THERE, task(1, queue="gpu"), mail()))
    assert go(store.tasks.settle(STREAM, task(1, queue="gpu"), mail()))
    assert not go(store.tasks.settle(STREAM, task(1, queue="gpu"), mail()))
    assert len(inbox(store, RUN)) == 1


def test_taken_tasks_are_listed_without_their_bodies(store: Store) -> None:
    offer(store, task(1, queue="gpu"))
    publish(store)

    ((_, bare),) = go(store.tasks.taken_by([STREAM], limit=10, with_body=False))
    ((_, whole),) = held(store, STREAM)

    assert bare.body == b""
    assert (bare.uid, bare.task, bare.attempt, bare.delivery) == (whole.uid, whole.task, whole.attempt, whole.delivery)
