"""The memory store: nothing in it waits, and it outlives whoever uses it."""

from collections.abc import Coroutine
from typing import Any

from tests.contract.kit import HERE, RUN, append, changed, go, mail, new, row, start
from weft.core.ids import Millis
from weft.ports.run_query import RunQuery
from weft.stores.memory import MemoryStore


def suspensions(coroutine: Coroutine[Any, Any, object]) -> int:
    """How often a coroutine gives way before it ends."""
    count = 0
    while True:
        try:
            coroutine.send(None)
        except StopIteration:
            return count
        count += 1


def test_no_method_gives_way_to_others() -> None:
    """The simulator decides the order of everything; a store that suspends would decide some of it."""
    store = MemoryStore()
    calls = [
        store.open(),
        store.log.commit([append(count=1, create=new())], HERE),
        store.log.send([mail()]),
        store.log.load(RUN, fold=1),
        store.log.claim([RUN], HERE, expected={}),
        store.directory.search(RunQuery()),
        store.directory.claimable([], dead=[], now=Millis(0), limit=1),
        store.hosts.join(HERE, lease_ms=1),
        store.hosts.find_dead(monotonic=0.0),
        store.blobs.put(b"x" * 1_000_000),
        store.tasks.take(HERE, queues=[], steps=[], now=Millis(0), limit=1),
        store.definitions.versions(),
        store.close(),
    ]

    assert [suspensions(call) for call in calls] == [0] * len(calls)


def test_the_content_survives_close() -> None:
    store = MemoryStore()
    start(store, count=2)

    go(store.close())
    go(store.open())

    assert row(store).seq == 2


def test_a_share_has_the_same_content() -> None:
    store = MemoryStore()
    start(store)

    assert row(store.share()) == row(store)


def test_two_stores_have_nothing_in_common() -> None:
    one, two = MemoryStore(), MemoryStore()
    start(one)

    assert go(two.directory.row(RUN)) is None


def test_it_always_says_that_something_may_have_changed() -> None:
    store = MemoryStore()

    assert [go(changed(store)) for _ in range(2)] == [True, True]
