"""A move that is killed before or after any write, on either side: one store goes on with the run, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bundles.kit import go, service_of
from tests.bundles.test_interrupted import Cut, CutPort, Killed
from tests.bundles.test_moves import bundles, depot, waiting
from tests.contract.conftest import STORES, Emptying
from weft.core.ids import RunId, Seq
from weft.ports.store import OVER_STATUSES, Store
from weft.runtime.bundles.service import BundleService
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService
from weft.stores.memory import MemoryStore

RUNS = ("p-1", "p-1/inner")
PORTS = ("log", "directory", "blobs", "definitions", "streams", "tags", "holds", "policies")


class CutStore:
    """A store as a process sees it that is killed at one of its writes."""

    def __init__(self, store: Store, cut: Cut) -> None:
        self.url, self.offset_ms = store.url, 0
        for name in PORTS:
            setattr(self, name, CutPort(name, getattr(store, name), cut))


@pytest.fixture(scope="module")
def moved() -> bytes:
    """A tree that waits for a message, and was moved."""

    async def scenario() -> bytes:
        async with depot() as app:
            await waiting(app, "outer")
            return await bundles(app).move("p-1")

    return go(scenario())


def dying(store: Store, cut: Cut) -> BundleService:
    return BundleService(RunService(CutStore(store, cut), SystemClock(), TimeIds()))  # type: ignore[arg-type]


async def statuses(store: Store) -> list[str]:
    found = [await store.directory.find(RunId(run)) for run in RUNS]
    return ["" if row is None else row.status for row in found]


async def check_one(home: Store, there: Store) -> None:
    """Raise AssertionError if a run goes on in two stores, or only a part of the tree in one."""
    for one in (home, there):
        assert len({status in OVER_STATUSES or not status for status in await statuses(one)}) == 1
    both = zip(await statuses(home), await statuses(there), strict=True)
    for pair in both:
        assert sum(bool(status) and status not in OVER_STATUSES for status in pair) <= 1, pair


async def log_of(store: Store, run: str) -> list[bytes]:
    row = await store.directory.find(RunId(run))
    assert row is not None
    return [one.body for one in await store.log.events(row.uid, after=Seq(0), limit=999)]


async def trial(home: Store, there: Store, template: bytes, cuts: tuple[Cut, Cut]) -> None:
    """Move a tree from one store to another, killed at one write of the move and at one of the adoption."""
    await BundleService(service_of(home)).import_(template, adopt=True)
    assert await statuses(home) == ["running", "running"]
    before = [await log_of(home, run) for run in RUNS]
    try:
        data = await dying(home, cuts[0]).move("p-1", to="there")
    except Killed:
        await check_one(home, there)
        data = await BundleService(service_of(home)).move("p-1", to="there")
    assert await statuses(home) == ["moved", "moved"]
    try:
        await dying(there, cuts[1]).import_(data, adopt=True)
    except Killed:
        await check_one(home, there)
        await BundleService(service_of(there)).import_(data, adopt=True)
    await check_one(home, there)
    assert await statuses(there) == ["running", "running"]
    for run, log in zip(RUNS, before, strict=True):
        after = await log_of(there, run)
        assert after[: len(log)] == log
        assert [b'"run_moved"' in body or b'"run_adopted"' in body for body in after[len(log) :]] == [True, True]


def sweep(new: Callable[[], tuple[Store, Store]], template: bytes) -> int:
    """Every single point on both sides. Returns how many."""
    count = (Cut(0, after=False), Cut(0, after=False))
    stores = new()
    go(opened(stores, trial(*stores, template, count)))
    assert min(cut.writes for cut in count) >= 2
    points = [(side, write, after) for side in (0, 1) for write in range(1, count[side].writes + 1) for after in (0, 1)]
    for side, write, after in points:
        cuts = [Cut(0, after=False), Cut(0, after=False)]
        cuts[side] = Cut(write, after=bool(after))
        stores = new()
        go(opened(stores, trial(*stores, template, (cuts[0], cuts[1]))))
    return len(points)


async def opened(stores: tuple[Store, Store], work: Any) -> None:
    for store in stores:
        await store.open()
    try:
        await work
    finally:
        for store in stores:
            await store.close()


def test_every_boundary_of_both_sides(moved: bytes) -> None:
    assert sweep(lambda: (MemoryStore(), MemoryStore()), moved) >= 12


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.proof
def test_every_boundary_of_both_sides_on_a_database(
    kind: str, moved: bytes, tmp_path: Path, emptying: Emptying
) -> None:
    made = 0

    def new() -> tuple[Store, Store]:
        """A database, and a file beside it."""
        nonlocal made
        made += 1
        folders = [tmp_path / f"{made}-{n}" for n in (0, 1)]
        for folder in folders:
            folder.mkdir()
        return STORES[kind](folders[0], emptying)(), STORES["sqlite"](folders[1], emptying)()

    assert sweep(new, moved) >= 12
