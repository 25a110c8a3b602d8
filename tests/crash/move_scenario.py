"""A move under fire: a run with a child leaves one store for another, with a ledger outside the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import weft
from tests.crash.hosting import hosting, until_answered, url_of
from tests.crash.scenario import BIG, Ledger
from weft.core.ids import RunId
from weft.ports.store import OVER_STATUSES
from weft.runtime.bundles.service import BundleService

STATUSES: dict[str, str] = {}
BUNDLE = "bundle.zip"


def build(folder: Path, url: str) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url)
    ledger = Ledger(folder / "ledger.txt")

    @app.step
    async def collect(n: int) -> str:
        ledger.write("effect", "collect", weft.task().key)
        return BIG + str(n)

    @app.workflow
    async def inner(ctx: weft.Context, n: int) -> int:
        first = await collect(n)
        return len(first) + await ctx.receive("more", int)

    @app.workflow
    async def job(ctx: weft.Context, n: int) -> int:
        return len(await collect(n)) + await ctx.call(inner(n), id="main.inner")

    return app


async def play(folder: Path) -> None:
    """Start the run in one store until it only waits, move it, and let it end in the other."""
    home, there = build(folder, url_of(folder)), build(folder, f"sqlite:///{folder}/there.db")
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(home), hosting(there):
        await _check_one(home, there)
        if await _status(there) is None:
            await _leave(home, folder)
        await _check_one(home, there)
        bundle = (folder / BUNDLE).read_bytes()
        await until_answered(lambda: BundleService(there.service).import_(bundle, adopt=True))
        await _check_one(home, there)
        ledger.write("acked", "adopted")
        await there.get("main.inner").send("more", 5, key="once")
        ledger.write("result", str(await there.get("main").result(timeout=100) == 2 * len(BIG) + 7))


async def _leave(home: weft.App, folder: Path) -> None:
    handle = await home.start("job", {"n": 1}, id="main", existing="attach") if await _status(home) is None else None
    if handle is not None or await _status(home) != "moved":
        await _until(home, "main", "child_started")
        await _until(home, "main.inner", "message_awaited")
    data = await until_answered(lambda: BundleService(home.service).move("main", to="there"))
    (folder / f"{BUNDLE}.part").write_bytes(data)
    (folder / f"{BUNDLE}.part").replace(folder / BUNDLE)


async def _until(app: weft.App, run: str, kind: str) -> None:
    async for event in app.get(run).events(follow=True):
        if event.kind == kind:
            return


async def _status(app: weft.App, run: str = "main") -> str | None:
    row = await app.service.store.directory.find(RunId(run))
    return None if row is None else row.status


async def _check_one(home: weft.App, there: weft.App) -> None:
    """Raise AssertionError if both stores go on with the run, or only one with its child."""
    for run in ("main", "main.inner"):
        statuses = [await _status(app, run) for app in (home, there)]
        active = [status for status in statuses if status is not None and status not in OVER_STATUSES]
        assert len(active) <= 1, f"{run} goes on in two stores"
        moved = statuses[0] == "moved"
        assert not moved or statuses[0] == await _status(home, "main"), "a tree moves as a whole"


def run(folder: Path) -> None:
    asyncio.run(play(folder))
