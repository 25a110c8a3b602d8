"""Tasks for other processes: offered under the run's epoch, handed to one at a time, settled with their report."""

import asyncio
from collections.abc import Sequence
from typing import Any

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
    finish,
    go,
    inbox,
    load,
    mail,
    rest,
    row,
    start,
)
from weft.core.ids import Epoch, HostId, Millis, RunUid
from weft.ports.store import Outcome, Store
from weft.ports.tasks import QueueLimits, TaskOffer


def task(number: int = 1, uid: str = RUN, **fields: Any) -> TaskOffer:
    values: dict[str, Any] = {
        "attempt": 1,
        "delivery": 1,
        "step": "charge",
        "queue": "default",
        "body": b'{"args":[1]}',
    }
    return TaskOffer(uid=RunUid(uid), task=number, **({"epoch": Epoch(1)} | values | fields))


def offer(store: Store, *tasks: TaskOffer) -> None:
    go(store.tasks.offer(tasks))


def take(store: Store, host: HostId = THERE, **fields: Any) -> Sequence[TaskOffer]:
    values: dict[str, Any] = {"queues": ["default"], "steps": ["charge"], "now": Millis(0), "limit": 10}
    return list(go(store.tasks.take(host, **(values | fields))))


def held(store: Store, *hosts: HostId) -> Sequence[tuple[HostId, TaskOffer]]:
    return list(go(store.tasks.taken_by(hosts, limit=10)))


def test_tasks_that_are_settled_at_the_same_time_are_settled_once_each(store: Store, peer: Store) -> None:
    start(store)
    start(store, OTHER)
    offer(store, task(1), task(2), task(3), task(1, OTHER))
    assert len(take(peer)) == 4

    async def settle_all() -> list[bool]:
        done = [(1, RUN, "a"), (2, RUN, "b"), (1, OTHER, "c"), (1, RUN, "d"), (9, RUN, "e"), (3, RUN, "f")]
        reports = [peer.tasks.settle(THERE, task(number, uid), mail(name, to=uid)) for number, uid, name in done]
        return await asyncio.gather(*reports)

    assert go(settle_all()) == [True, True, True, False, False, True]
    assert held(store, THERE) == []
    assert [inbox(store, uid) for uid in (RUN, OTHER)] == [["a", "b", "f"], ["c"]]


def test_an_offered_task_is_taken_as_it_was_offered(store: Store, peer: Store) -> None:
    start(store)
    offer(store, task(not_before=Millis(0)))

    assert take(peer) == [task()]


def test_who_names_no_queue_takes_tasks_of_all(store: Store) -> None:
    start(store)
    offer(store, task(1), task(2, queue="rare"), task(3, step="other"))

    assert [one.task for one in take(store, queues=None)] == [1, 2]
    assert take(store, queues=[]) == []
    assert take(store, queues=None) == []


def test_limits_hold_for_who_names_no_queue(store: Store) -> None:
    start(store)
    go(store.tasks.limit("rare", QueueLimits(concurrency=1)))
    offer(store, task(1, queue="rare"), task(2, queue="rare"), task(3))

    assert [one.task for one in take(store, queues=None)] == [1, 3]


def test_a_task_is_handed_to_one(store: Store) -> None:
    start(store)
    offer(store, task())

    assert take(store, HERE) == [task()]
    assert take(store, THERE) == []


def test_the_oldest_come_first_and_no_more_than_wanted(store: Store) -> None:
    start(store)
    offer(store, task(3), task(1))
    offer(store, task(2))

    assert [one.task for one in take(store, limit=2)] == [3, 1]
    assert [one.task for one in take(store, limit=2)] == [2]


@pytest.mark.parametrize("fields", [{"queues": ["slow"]}, {"steps": ["ship"]}, {"queues": []}, {"steps": []}])
def test_only_the_wanted_queues_and_steps_are_taken(store: Store, fields: dict[str, Any]) -> None:
    start(store)
    offer(store, task())

    assert take(store, **fields) == []


def test_several_queues_and_steps_are_served(store: Store) -> None:
    start(store)
    offer(store, task(1, queue="a", step="x"), task(2, queue="b", step="y"), task(3, queue="c", step="x"))

    assert [one.task for one in take(store, queues=["b", "a"], steps=["x", "y"])] == [1, 2]


def test_a_task_is_not_taken_before_its_time(store: Store) -> None:
    start(store)
    offer(store, task(not_before=Millis(500)))

    assert take(store, now=Millis(499)) == []
    assert len(take(store, now=Millis(500))) == 1


def test_the_same_identity_twice_is_one_row(store: Store) -> None:
    start(store)
    offer(store, task(), task())
    offer(store, task(body=b'"another"'))

    assert take(store) == [task()]


@pytest.mark.parametrize("fields", [{"number": 2}, {"attempt": 2}, {"delivery": 2}])
def test_every_part_of_the_identity_counts(store: Store, fields: dict[str, Any]) -> None:
    start(store)
    offer(store, task(), task(**fields))

    assert len(take(store)) == 2


def test_a_task_of_an_old_epoch_is_not_offered(store: Store) -> None:
    start(store)
    claim(store, epoch=1)

    offer(store, task(epoch=Epoch(1)))

    assert take(store) == []


def test_a_task_of_a_run_that_is_over_or_unknown_is_not_offered(store: Store) -> None:
    start(store)
    finish(store)

    offer(store, task(), task(uid=NOBODY))

    assert take(store) == []


def test_one_bad_offer_harms_no_other(store: Store) -> None:
    start(store)

    offer(store, task(1, epoch=Epoch(9)), task(2))

    assert [one.task for one in take(store)] == [2]


def test_rows_stay_when_the_run_is_claimed_or_rests(store: Store) -> None:
    start(store)
    offer(store, task(1), task(2))
    claim(store, epoch=1)
    rest(store, epoch=2)

    assert [one.task for one in take(store)] == [1, 2]


def test_who_has_what_is_known(store: Store) -> None:
    start(store)
    offer(store, task(1), task(2), task(3))
    take(store, THERE, limit=1)
    take(store, HERE, limit=1)

    assert held(store, THERE) == [(THERE, task(1))]
    assert held(store, HERE, THERE) == [(THERE, task(1)), (HERE, task(2))]
    assert held(store) == []


def test_the_rows_of_a_run_are_known_claimed_or_not(store: Store) -> None:
    start(store)
    start(store, OTHER)
    offer(store, task(1), task(2), task(1, uid=OTHER))
    take(store, THERE, limit=1)

    assert list(go(store.tasks.rows(RUN))) == [task(1), task(2)]
    assert list(go(store.tasks.rows(NOBODY))) == []


@pytest.mark.parametrize("extras", [{}, {"refs": ["blob"]}], ids=["plain", "with more"])
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_the_append_that_ends_a_run_deletes_its_tasks(store: Store, status: str, extras: Any) -> None:
    """Else another host could take one between a retry and the load of the run."""
    start(store)
    start(store, OTHER)
    offer(store, task(1), task(2), task(1, uid=OTHER))
    take(store, limit=1)
    finish(store, status=status, **extras)

    assert (held(store, THERE), list(go(store.tasks.rows(RUN)))) == ([], [])
    if status != "completed":
        assert commit(store, append(seq=1, reopen=Millis(0), status="running")) == [Outcome.ACCEPTED]
    assert [one.uid for one in take(store)] == [OTHER]


def test_an_offer_that_arrives_after_a_retry_is_refused(store: Store) -> None:
    """It was sent before the end of the run, and the run has the same epoch until a host claims it."""
    start(store)
    finish(store, status="failed")
    assert commit(store, append(seq=1, reopen=Millis(0), status="running")) == [Outcome.ACCEPTED]
    offer(store, task())

    assert list(go(store.tasks.rows(RUN))) == []
    (claimed,) = claim(store, epoch=1)
    offer(store, task(), task(2, epoch=claimed.epoch))
    assert [one.task for one in go(store.tasks.rows(RUN))] == [2]


def test_an_append_that_is_refused_deletes_no_tasks(store: Store) -> None:
    start(store)
    offer(store, task())

    assert commit(store, append(seq=5, status="failed")) == [Outcome.STALE_SEQ]
    assert list(go(store.tasks.rows(RUN))) == [task()]


def test_a_held_run_keeps_its_tasks_when_it_is_opened(store: Store) -> None:
    start(store)
    offer(store, task())
    assert commit(store, append(status="held")) == [Outcome.ACCEPTED]
    rest(store, seq=1)

    assert commit(store, append(seq=1, reopen=Millis(0), status="running")) == [Outcome.ACCEPTED]
    assert list(go(store.tasks.rows(RUN))) == [task()]


def test_a_settled_task_is_gone_and_its_report_is_in_the_inbox(store: Store) -> None:
    start(store)
    offer(store, task())
    take(store)
    report = mail("report")

    assert go(store.tasks.settle(THERE, task(), report))
    assert (list(load(store).inbox), row(store).mail) == ([report], 1)
    assert held(store, THERE) == []


def test_a_task_is_settled_once(store: Store) -> None:
    start(store)
    offer(store, task())
    take(store)
    go(store.tasks.settle(THERE, task(), mail("first")))

    assert not go(store.tasks.settle(THERE, task(), mail("second")))
    assert inbox(store) == ["first"]


def test_only_who_has_it_may_settle_it(store: Store) -> None:
    start(store)
    offer(store, task())
    assert not go(store.tasks.settle(THERE, task(), mail()))
    take(store, HERE)

    assert not go(store.tasks.settle(THERE, task(), mail()))
    assert inbox(store) == []


@pytest.mark.parametrize("earlier", [{"delivery": 1}, {"attempt": 1}, {"number": 2}, {"uid": OTHER}], ids=str)
def test_an_earlier_delivery_of_a_task_does_not_settle_the_later_one(store: Store, earlier: Any) -> None:
    """The same host may have both: it lost the first, and took the task again."""
    start(store)
    start(store, OTHER)
    given = task(attempt=2, delivery=2)
    offer(store, given)
    take(store)

    assert not go(store.tasks.settle(THERE, task(**{"attempt": 2, "delivery": 2, **earlier}), mail("late")))
    assert inbox(store) == []
    assert held(store, THERE) == [(THERE, given)]
    assert go(store.tasks.settle(THERE, given, mail("in time")))
    assert inbox(store) == ["in time"]


def test_a_report_to_a_run_that_is_over_is_dropped(store: Store) -> None:
    start(store)
    offer(store, task())
    take(store)
    finish(store)

    assert not go(store.tasks.settle(THERE, task(), mail()))
    assert inbox(store) == []


def test_withdrawn_tasks_are_gone_claimed_or_not(store: Store) -> None:
    start(store)
    start(store, OTHER)
    offer(store, task(1), task(2), task(3), task(1, uid=OTHER), task(1, delivery=2))
    take(store, limit=1)

    go(store.tasks.withdraw(RUN, [1, 2, 9]))

    assert held(store, THERE) == []
    assert [(one.uid, one.task) for one in take(store)] == [(RUN, 3), (OTHER, 1)]


def test_the_tasks_of_the_dead_are_settled_in_their_name(store: Store) -> None:
    start(store)
    offer(store, task(1), task(2), task(3), task(4))
    take(store, THERE, limit=2)
    take(store, HERE, limit=1)

    for host, lost in held(store, THERE):
        assert go(store.tasks.settle(host, lost, mail(f"lost {lost.task}")))

    assert held(store, THERE) == []
    assert inbox(store) == ["lost 1", "lost 2"]
    assert not go(store.tasks.settle(THERE, task(1), mail()))
    assert held(store, HERE) == [(HERE, task(3))]
    assert [one.task for one in take(store)] == [4]


def test_what_hosts_have_comes_in_pages(store: Store) -> None:
    start(store)
    offer(store, *[task(number) for number in range(5)])
    take(store, THERE)

    assert [one.task for _, one in go(store.tasks.taken_by([THERE], limit=2))] == [0, 1]
