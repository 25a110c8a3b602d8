"""Limits per key when the clock of the machine goes back. Postgres judges them by the clock of its server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.kit import HERE, RUN, THERE, go, start
from tests.contract.test_tasks import offer, task
from weft.core.ids import Millis
from weft.ports.store import Store
from weft.ports.tasks import KeyLimit
from weft.stores.memory import MemoryStore
from weft.stores.sqlite import SqliteStore

DAY = 86_400_000
PERIOD = 1_000


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(f"sqlite:///{tmp_path}/weft.db")
    go(made.open())
    start(made)
    yield made
    go(made.close())


def limited(store: Store, rate: int, count: int) -> None:
    go(store.tasks.declare({"step/charge": KeyLimit(rate=rate, per_ms=PERIOD)}))
    offer(store, *(task(number, RUN, limit="step/charge", key="ann") for number in range(1, count + 1)))


def taken(store: Store, now: int) -> int:
    return len(go(store.tasks.take(THERE, queues=None, steps=["charge"], now=Millis(now), limit=100)))


@pytest.mark.parametrize("rate", [2, 100])
def test_a_key_at_its_rate_waits_one_period_and_not_until_the_clock_has_caught_up(store: Store, rate: int) -> None:
    limited(store, rate, 4 * rate)
    assert [taken(store, DAY + at) for at in (0, 0)] == [rate, 0]

    assert taken(store, DAY // 2) == 0, "what began before the clock went back still counts"
    assert taken(store, DAY // 2 + PERIOD - 1) == 0
    assert taken(store, DAY // 2 + 2 * PERIOD) == rate
    assert taken(store, DAY // 2 + 2 * PERIOD) == 0


def test_a_new_task_of_a_key_at_its_rate_begins_a_period_after_the_clock_went_back(store: Store) -> None:
    limited(store, rate=1, count=1)
    assert taken(store, DAY) == 1

    offers = [task(number, RUN, limit="step/charge", key="ann") for number in (8, 9)]
    first = go(store.tasks.exchange(HERE, [], offers[:1], now=Millis(DAY // 2), most=1))
    assert first.taken == []
    assert taken(store, DAY // 2 + PERIOD) == 1


def test_a_turn_that_is_only_a_period_away_is_waited_for(store: Store) -> None:
    limited(store, rate=1, count=2)
    assert taken(store, DAY) == 1
    assert taken(store, DAY) == 0

    assert taken(store, DAY - PERIOD + 1) == 0
    assert taken(store, DAY + PERIOD - 1) == 0
    assert taken(store, DAY + PERIOD) == 1
