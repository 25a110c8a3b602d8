"""An import that is killed before or after any of its writes leaves nothing half, and the next one completes it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bundles.kit import GRAPH, content, go, imported, recorded, shop
from tests.contract.conftest import STORES, Emptying
from weft.core.ids import RunId, Seq
from weft.ports.run_query import RunQuery
from weft.ports.store import Store
from weft.runtime.bundles.service import BundleService
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService
from weft.stores.memory import MemoryStore
from weft.testing.faults import WRITES, StoreCall, WiredStore


class Killed(BaseException):
    """The process is gone."""


class Cut:
    """Kills the process before or after a write."""

    def __init__(self, write: int, *, after: bool) -> None:
        self._left = write
        self._after = after
        self.writes = 0

    async def __call__(self, call: StoreCall) -> Any:
        async def apply() -> Any:
            return call.apply()

        return await self.around(call.what, apply)

    async def around(self, what: str, apply: Callable[[], Awaitable[Any]]) -> Any:
        """Carry out a call of the store, or die."""
        if what not in WRITES:
            return await apply()
        self.writes += 1
        if self.writes != self._left:
            return await apply()
        if self._after:
            await apply()
        raise Killed


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    file = tmp_path_factory.mktemp("graph") / "sorting.yaml"
    file.write_text(GRAPH)
    return [go(recorded(shop())), go(_graph(file))]


async def _graph(file: Path) -> bytes:
    app = shop()
    app.graph(file)
    async with app:
        handle = await app.start("sorting", {"n": 9}, id="s")
        await handle.result(timeout=200)
        return await BundleService(app.service).export("s")


async def cut_import(store: MemoryStore, data: bytes, cut: Cut) -> None:
    wired: Any = WiredStore(store, cut)
    await BundleService(RunService(wired, SystemClock(), TimeIds())).import_(data)


def test_every_boundary(bundles: list[bytes]) -> None:
    for data in bundles:
        whole = MemoryStore()
        count = Cut(0, after=False)
        go(cut_import(whole, data, count))
        assert count.writes >= 2
        for write in range(1, count.writes + 1):
            for after in (False, True):
                store = MemoryStore()
                with pytest.raises(Killed):
                    go(cut_import(store, data, Cut(write, after=after)))
                root = go(_root(store))
                assert root is None or (write, after) == (count.writes, True), "the root is written last"
                go(imported(store, data))
                assert content(store) == content(whole), (write, after)


async def _root(store: MemoryStore) -> Any:
    return await store.directory.find(RunId("o-1")) or await store.directory.find(RunId("s"))


def test_two_imports_at_once_are_one(bundles: list[bytes]) -> None:
    """The second finds, at its write, what the first has written meanwhile."""
    store = MemoryStore()

    async def other(call: StoreCall) -> Any:
        if call.what == "log.write_run" and not store.content.runs:
            await imported(store, bundles[0])
        return call.apply()

    wired: Any = WiredStore(store, other)
    done = go(BundleService(RunService(wired, SystemClock(), TimeIds())).import_(bundles[0]))

    assert not any(run.created for run in done.runs)
    assert len(store.content.runs) == len(done.runs)


class CutPort:
    """A port of a real store whose writes may kill the process."""

    def __init__(self, name: str, port: Any, cut: Cut) -> None:
        self._name = name
        self._port = port
        self._cut = cut

    def __getattr__(self, method: str) -> Any:
        real = getattr(self._port, method)

        async def call(*args: Any, **options: Any) -> Any:
            return await self._cut.around(f"{self._name}.{method}", lambda: real(*args, **options))

        return call


class CutStore:
    """A real store as a process sees it that is killed at one of its writes."""

    def __init__(self, store: Store, cut: Cut) -> None:
        self.url, self.offset_ms = store.url, 0
        for name in ("log", "directory", "blobs", "definitions", "streams", "tags", "policies"):
            setattr(self, name, CutPort(name, getattr(store, name), cut))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.proof
def test_every_boundary_of_a_database(kind: str, bundles: list[bytes], tmp_path: Path, emptying: Emptying) -> None:
    async def attempt(store: Store, data: bytes, cut: Cut) -> dict[str, Any]:
        await store.open()
        service = RunService(CutStore(store, cut), SystemClock(), TimeIds())  # type: ignore[arg-type]
        try:
            await BundleService(service).import_(data)
        except Killed:
            await store.close()
            await store.open()
            await imported(store, data)
        rows = (await store.directory.search(RunQuery(status="imported"))).rows
        found = {row.uid: (row, list(await store.log.events(row.uid, after=Seq(0), limit=999))) for row in rows}
        names = await store.definitions.names("graph")
        await store.close()
        return {"runs": found, "definitions": list(names)}

    for n, data in enumerate(bundles):
        count = Cut(0, after=False)
        folder = tmp_path / str(n)
        folder.mkdir()
        whole = go(attempt(STORES[kind](folder, emptying)(), data, count))
        for write in range(1, count.writes + 1):
            for after in (False, True):
                place = tmp_path / f"{n}-{write}-{after}"
                place.mkdir()
                store = STORES[kind](place, emptying)()
                assert go(attempt(store, data, Cut(write, after=after))) == whole, (write, after)
