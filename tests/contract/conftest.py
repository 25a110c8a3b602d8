"""Every test of this folder runs once per store. A new store is one more entry in ``STORES``."""

import functools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests import scale, servers
from tests.contract import hot
from tests.contract.kit import go
from weft.ports.store import Store
from weft.stores.memory import MemoryStore
from weft.stores.postgres import PostgresStore
from weft.stores.sqlite import SqliteStore

Opened = Callable[[], Store]
Emptying = Callable[[str], None]
Kept = Callable[[str], "KeptPostgres"]


def _memory(_folder: Path, _empty: Emptying) -> Opened:
    first = MemoryStore()
    return first.share


def _sqlite(folder: Path, _empty: Emptying) -> Opened:
    (folder / "weft.db").write_bytes(_empty_file())
    return lambda: SqliteStore(f"sqlite:///{folder}/weft.db", durability="fast")


@functools.cache
def _empty_file() -> bytes:
    """Return a file with all tables, which are made once: that costs more than most tests."""
    with tempfile.TemporaryDirectory() as place:
        store = SqliteStore(f"sqlite:///{place}/weft.db")
        go(store.open())
        go(store.close())
        return Path(place, "weft.db").read_bytes()


class KeptPostgres(PostgresStore):
    """A store whose connections stay from test to test: new ones cost more than most tests."""

    async def open(self) -> None:
        """Connect, the first time. After that, be new in all but the connections."""
        if self._parts is None:
            await super().open()
        else:
            self._bind_parts()

    async def close(self) -> None:
        """Stay connected."""

    async def disconnect(self) -> None:
        await super().close()


def _postgres(_folder: Path, empty: Emptying) -> Opened:
    url = servers.database("contract")
    empty(url)
    return lambda: PostgresStore(url, durability="fast")


def _hot_memory(folder: Path, empty: Emptying) -> Opened:
    return hot.over_memory(_memory(folder, empty))


def _hot_postgres(folder: Path, empty: Emptying) -> Opened:
    return hot.over_redis(_postgres(folder, empty))


STORES: dict[str, Callable[[Path, Emptying], Opened]] = {
    "hot-memory": _hot_memory,
    "hot-postgres": _hot_postgres,
    "memory": _memory,
    "postgres": _postgres,
    "sqlite": _sqlite,
}


@pytest.fixture(scope="session")
def emptying() -> Iterator[Emptying]:
    """Empties a database, in a session that stays: one that is new to a server costs more than most tests."""
    sessions: dict[str, Any] = {}

    def empty(url: str) -> None:
        if url not in sessions:
            sessions[url] = go(asyncpg.connect(url))
        go(sessions[url].execute(servers.EMPTY))

    yield empty
    for each in sessions.values():
        go(each.close())


# A store with a hot path hands on what these modules do not ask for as it is; the proof runs all of them with it.
HOT = {"test_children.py", "test_claimable.py", "test_hosts.py", "test_interleavings.py", "test_judge.py",
       "test_mail.py", "test_ownership.py", "test_reopen.py", "test_runs.py", "test_shorten.py", "test_streams.py",
       "test_tasks.py", "test_together.py", "test_write_run.py"}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test once per store, unless its module names the stores itself."""
    is_named = any("make" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "make" in metafunc.fixturenames and not is_named and not hasattr(metafunc.module, "make"):
        # Beside the others, the last one proves that a WAL in Redis behaves as one in memory.
        count = 4 if metafunc.definition.path.name in HOT else 3
        stores = scale.first(count, ["memory", "sqlite", "postgres", "hot-memory", "hot-postgres"])
        metafunc.parametrize("make", stores, indirect=True)


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path, emptying: Emptying) -> Opened:
    """Makes stores over one database, which is empty at first."""
    return STORES[request.param](tmp_path, emptying)


@pytest.fixture(scope="session")
def kept() -> Iterator[Kept]:
    """Returns stores on Postgres that stay connected, by the name of their fixture."""
    stores: dict[str, KeptPostgres] = {}

    def keep(name: str) -> KeptPostgres:
        if name not in stores:
            stores[name] = KeptPostgres(servers.database("contract"), durability="fast")
        return stores[name]

    yield keep
    for each in stores.values():
        go(each.disconnect())


@pytest.fixture
def store(request: pytest.FixtureRequest, make: Opened, kept: Kept) -> Iterator[Store]:
    """An empty store, open."""
    with _open(request, make, kept) as opened:
        yield opened


@pytest.fixture
def peer(request: pytest.FixtureRequest, make: Opened, kept: Kept, store: Store) -> Iterator[Store]:
    """The same database as another process sees it."""
    with _open(request, make, kept) as opened:
        yield opened


# What tests of these modules do to hosts and their sessions outlives the rows of a test.
MINDFUL = {"test_hosts.py", "test_interleavings.py", "test_wals.py"}


@contextmanager
def _open(request: pytest.FixtureRequest, make: Opened, kept: Kept) -> Iterator[Store]:
    kind, is_mindful = request.node.callspec.params["make"], request.path.name in MINDFUL
    opened: Store
    if kind == "postgres" and not is_mindful:
        opened = kept(request.fixturename)
    elif isinstance(make, hot.Opening) and kind == "hot-postgres" and not is_mindful:
        opened = make.over(kept(request.fixturename))
    else:
        opened = make()
    go(opened.open())
    if not is_mindful:
        hot.begin(opened)
    yield opened
    go(opened.close())
