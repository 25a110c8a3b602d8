"""Every test of this folder runs once per store. A new store is one more entry in ``STORES``."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.contract.kit import go
from weft.ports.store import Store
from weft.stores.memory import MemoryStore
from weft.stores.postgres import PostgresStore
from weft.stores.sqlite import SqliteStore

Opened = Callable[[], Store]


def _memory(_folder: Path) -> Opened:
    first = MemoryStore()
    return first.share


def _sqlite(folder: Path) -> Opened:
    return lambda: SqliteStore(f"sqlite:///{folder}/weft.db", durability="fast")


def _postgres(_folder: Path) -> Opened:
    url = servers.database("contract")
    servers.empty(url)
    return lambda: PostgresStore(url, durability="fast")


STORES: dict[str, Callable[[Path], Opened]] = {"memory": _memory, "postgres": _postgres, "sqlite": _sqlite}


@pytest.fixture(params=sorted(STORES))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Makes stores over one database, which is empty at first."""
    return STORES[request.param](tmp_path)


@pytest.fixture
def store(make: Opened) -> Iterator[Store]:
    """An empty store, open."""
    opened = make()
    go(opened.open())
    yield opened
    go(opened.close())


@pytest.fixture
def peer(make: Opened, store: Store) -> Iterator[Store]:
    """The same database as another process sees it."""
    other = make()
    go(other.open())
    yield other
    go(other.close())
