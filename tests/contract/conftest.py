"""Every test of this folder runs once per store. A new store is one more entry in ``STORES``."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weft.ports.store import Store
from weft.stores.memory import MemoryStore
from weft.stores.sqlite import SqliteStore

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(f"sqlite:///{folder}/weft.db", durability="fast"),
}


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store, open."""
    opened = STORES[request.param](tmp_path)
    asyncio.run(opened.open())
    yield opened
    asyncio.run(opened.close())


@pytest.fixture
def peer(store: Store, tmp_path: Path) -> Iterator[Store]:
    """The same database as another process sees it."""
    other = store.share() if isinstance(store, MemoryStore) else SqliteStore(store.url, durability="fast")
    asyncio.run(other.open())
    yield other
    asyncio.run(other.close())
