"""Metrics about the installation: what waits for a host, and what is known while the store cannot be read."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

from prometheus_client import CollectorRegistry, generate_latest

from tests.monitoring.files import metrics
from weft.core.ids import RunUid
from weft.errors import Unavailable
from weft.ports.store import StoreDetails
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService
from weft.server.installation import Installation, Unclaimed, store_trouble
from weft.stores.memory import MemoryStore

A, B = RunUid("a"), RunUid("b")


class BrokenStore(MemoryStore):
    """A store that cannot be read."""

    async def details(self) -> StoreDetails:
        raise Unavailable("The database is gone.")


def measured(store: MemoryStore) -> dict[str, float]:
    installation = Installation()
    registry = CollectorRegistry()
    registry.register(installation)
    asyncio.run(installation.measure(RunService(store, SystemClock(), TimeIds())))
    return metrics(generate_latest(registry).decode())


def test_a_run_waits_since_it_was_first_seen_and_no_longer_when_it_is_taken() -> None:
    waits = Unclaimed()

    assert waits.seconds([], 1.0) == 0.0
    assert waits.seconds([A], 10.0) == 0.0
    assert waits.seconds([A, B], 15.0) == 5.0
    assert waits.seconds([B], 20.0) == 5.0
    assert waits.seconds([A], 30.0) == 0.0, "it was taken in between"


def test_a_store_is_described_by_its_runs_hosts_and_tasks() -> None:
    found = measured(MemoryStore("memory://"))

    assert found['weft_runs{status="running"}'] == 0
    assert (found['weft_hosts{state="alive"}'], found['weft_hosts{state="gone"}']) == (0, 0)
    assert found["weft_stalled_seconds"] == 0
    assert f'weft_build_info{{version="{version("weft")}"}}' in found
    assert "weft_store_free_bytes" not in found, "it has no disk"


def test_what_is_in_the_store_is_missing_while_it_cannot_be_read() -> None:
    found = measured(BrokenStore("memory://"))

    assert "weft_stalled_seconds" not in found
    assert not [name for name in found if name.startswith("weft_runs")]
    assert found["weft_takeovers_total"] == 0


def test_the_store_is_not_read_again_within_a_second() -> None:
    class Counted(MemoryStore):
        reads = 0

        async def details(self) -> StoreDetails:
            self.reads += 1
            return await super().details()

    store = Counted("memory://")
    installation = Installation()
    runs = RunService(store, SystemClock(), TimeIds())

    async def scrape() -> None:
        await asyncio.gather(*(installation.measure(runs) for _ in range(5)))

    asyncio.run(scrape())

    assert store.reads == 1


def test_a_process_without_a_host_has_no_trouble_with_its_store() -> None:
    assert asyncio.run(store_trouble(RunService(MemoryStore("memory://"), SystemClock(), TimeIds()))) == ""
