"""Hosts: who is alive, judged by each observer for itself."""

import time

from tests.contract.kit import HERE, THERE, append, changed, commit, create, go, new, start
from weft.core.ids import Epoch, HostId, Millis, RunUid
from weft.ports.store import Store
from weft.ports.tasks import TaskOffer


def dead(store: Store, at: float) -> list[HostId]:
    return list(go(store.hosts.find_dead(monotonic=at)))


def join(store: Store, host: HostId = HERE, lease_ms: int = 10_000) -> None:
    go(store.hosts.join(host, lease_ms=lease_ms))


def test_nobody_is_dead_in_an_empty_store(store: Store) -> None:
    assert dead(store, 0.0) == []


def test_a_host_is_not_dead_at_first_sight(store: Store, peer: Store) -> None:
    """However late it is: an observer that has just started knows nothing yet."""
    join(store)

    assert dead(peer, 1_000_000.0) == []


def test_a_host_that_stands_still_for_its_lease_is_dead(store: Store, peer: Store) -> None:
    join(store)
    dead(peer, 100.0)

    assert (dead(peer, 109.9), dead(peer, 110.0)) == ([], [HERE])


def test_a_host_that_beats_lives_on(store: Store, peer: Store) -> None:
    join(store)
    dead(peer, 100.0)
    go(store.hosts.beat(HERE))

    assert dead(peer, 109.0) == []
    assert dead(peer, 118.0) == []
    assert dead(peer, 119.0) == [HERE]


def test_another_process_may_beat_for_a_host(store: Store, peer: Store) -> None:
    """A worker's heartbeat may reach another process than its claim did."""
    join(store)
    dead(store, 100.0)
    go(peer.hosts.beat(HERE))

    assert dead(store, 110.0) == []


def test_a_host_that_beats_again_is_alive_again(store: Store, peer: Store) -> None:
    join(store)
    dead(peer, 0.0)
    assert dead(peer, 20.0) == [HERE]

    go(store.hosts.beat(HERE))

    assert dead(peer, 21.0) == []


def test_each_host_has_its_own_lease(store: Store, peer: Store) -> None:
    join(store, HERE, lease_ms=1_000)
    join(store, THERE, lease_ms=60_000)
    dead(peer, 0.0)

    assert dead(peer, 5.0) == [HERE]


def test_each_observer_has_a_clock_of_its_own(store: Store, peer: Store) -> None:
    join(store)
    dead(peer, 1_000_000.0)

    assert dead(store, 5.0) == []
    assert dead(store, 14.0) == []
    assert dead(peer, 1_000_009.0) == []


def test_a_host_that_left_is_not_listed_any_more(store: Store, peer: Store) -> None:
    join(store)

    go(store.hosts.leave(HERE))

    assert dead(peer, 0.0) == []
    assert dead(peer, 100.0) == []


def test_what_a_host_that_left_still_owns_is_claimable_at_once(store: Store, peer: Store) -> None:
    join(store)
    start(store)

    go(store.hosts.leave(HERE))

    assert dead(peer, 0.0) == [HERE]


def test_an_owner_that_never_joined_is_dead(store: Store) -> None:
    commit(store, append(count=0, create=new(owner=THERE)), host=THERE)

    assert dead(store, 0.0) == [THERE]


def test_one_who_took_a_task_and_left_is_dead(store: Store, peer: Store) -> None:
    join(store, HERE)
    join(store, THERE)
    start(store)
    offer = TaskOffer(
        uid=RunUid("run-1"), task=1, attempt=1, delivery=1, step="s", queue="q", body=b"1", epoch=Epoch(1)
    )
    go(store.tasks.offer([offer]))
    go(store.tasks.take(THERE, queues=["q"], steps=["s"], now=Millis(0), limit=1))

    go(store.hosts.leave(THERE))

    assert dead(peer, 0.0) == [THERE]


def test_joining_twice_is_joining_once(store: Store, peer: Store) -> None:
    join(store)
    join(store)

    assert dead(peer, 0.0) == []


def test_a_host_that_left_may_join_again(store: Store, peer: Store) -> None:
    join(store)
    start(store)
    go(store.hosts.leave(HERE))

    join(store)

    assert dead(peer, 0.0) == []


def test_the_beat_of_a_host_that_nobody_knows_lists_nobody(store: Store) -> None:
    go(store.hosts.beat(HERE))

    assert dead(store, 0.0) == []
    assert dead(store, 100.0) == []


def test_what_another_process_wrote_for_others_shows(store: Store, peer: Store) -> None:
    """At once in a file; a server may need a moment to tell, and is asked again."""
    for _ in range(2):
        go(changed(store))

    create(peer, new(owner=None, start=b"1"))

    until = time.monotonic() + 200
    while not go(changed(store)):
        assert time.monotonic() < until


def test_a_heart_beats_for_its_host(store: Store, peer: Store) -> None:
    join(store)
    dead(peer, 0.0)

    async def beat() -> None:
        heart = store.hosts.heartbeat_sender()
        await heart.beat(HERE)
        await heart.close()

    go(beat())

    assert dead(peer, 10.0) == []


def test_the_living_are_those_that_were_not_dead_at_the_last_look(store: Store, peer: Store) -> None:
    join(store, HERE, lease_ms=1_000)
    join(store, THERE, lease_ms=60_000)

    dead(peer, 0.0)
    assert sorted(go(peer.hosts.list_living())) == [HERE, THERE]
    dead(peer, 5.0)
    assert list(go(peer.hosts.list_living())) == [THERE]


def test_people_see_who_is_there_and_what_each_has(store: Store, peer: Store) -> None:
    go(store.hosts.join(HERE, lease_ms=10_000, about={"machine": "m1", "pid": 7}))
    join(store, THERE)
    start(store)
    offer = TaskOffer(
        uid=RunUid("run-1"), task=1, attempt=1, delivery=1, step="s", queue="q", body=b"1", epoch=Epoch(1)
    )
    go(store.tasks.offer([offer]))
    go(store.tasks.take(THERE, queues=["q"], steps=["s"], now=Millis(0), limit=1))

    first, second = go(peer.hosts.list_all())

    assert (first.host, dict(first.about), first.runs, first.tasks) == (HERE, {"machine": "m1", "pid": 7}, 1, 0)
    assert (second.host, dict(second.about), second.runs, second.tasks) == (THERE, {}, 0, 1)
    assert (first.gone, first.lease_ms, first.silent_ms < 10_000) == (False, 10_000, True)


def test_a_host_adds_to_its_description_and_keeps_it_when_it_comes_back(store: Store, peer: Store) -> None:
    go(store.hosts.join(HERE, lease_ms=10_000, about={"pid": 7}))

    go(store.hosts.describe(HERE, {"address": "http://here"}))
    go(store.hosts.beat(HERE))

    (row,) = go(peer.hosts.list_all())
    assert dict(row.about) == {"pid": 7, "address": "http://here"}


def test_a_host_that_has_not_joined_is_not_described(store: Store) -> None:
    go(store.hosts.describe(HERE, {"address": "http://here"}))

    assert not go(store.hosts.list_all())
