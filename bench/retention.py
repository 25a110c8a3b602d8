"""``python -m bench.retention [delete|large] [RUNS] [URL]``: what old runs cost, while they are deleted or stay.

``delete`` fills a store with RUNS old runs (100,000), measures starts, deletes the old runs as a host does in the
background, and measures starts meanwhile. ``large`` fills a store with RUNS runs (1,000,000) and measures the list of
the newest 50, a start, and how long a host takes until it is ready; the same on an empty store. Without a URL, the
store is a new SQLite file. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import asyncpg  # type: ignore[import-untyped]

import weft
from weft.core.ids import HostId, Millis
from weft.ports.run_query import RunQuery
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.duties.retention import RetentionDuty
from weft.runtime.retention_policy import read_policy

RUNS = {"delete": 100_000, "large": 1_000_000}
EVENTS = 4
DAY_MS = 24 * 3600 * 1000
STARTS = 400
PACE_SECONDS = 0.02
"""Starts come at this pace, as from a web server, and do not pile up."""
POLICY = read_policy({"completed": "30d"})

_RUNS = (
    "INSERT INTO runs (uid, id, workflow, version, style, status, seq, updated_at, epoch, mail, format, created_at, "
    "ended_at, attributes) SELECT 'old' || n, 'old-' || n, 'job', '1', 'code', 'completed', {events}, {at} + n, 1, 0, "
    "1, {at} + n, {at} + n, '{{}}' FROM {series}"
)
_EVENTS = (
    "INSERT INTO events (run, seq, at, body, crc) SELECT r.num, s.seq, r.created_at, "
    """'{{"kind":"task_succeeded","task":1,"output":"a result of some length, as they are"}}', 0 FROM runs r, {seqs} """
    "WHERE r.uid LIKE 'old%'"
)


def new_app(url: str) -> weft.App:
    app = weft.App(url)

    @app.workflow
    async def job() -> int:
        return 1

    return app


def fill_sqlite(path: Path, runs: int) -> None:
    """Insert runs that ended long ago, past the API: what is inside them is never read."""
    at = int(time.time() * 1000) - 90 * DAY_MS
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA synchronous = off")
    series = f"(WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {runs}) SELECT n FROM c)"
    connection.execute("BEGIN")
    connection.execute(_RUNS.format(events=EVENTS, at=at, series=series))
    seqs = " UNION ALL ".join(f"SELECT {seq} AS seq" for seq in range(1, EVENTS + 1))
    connection.execute(_EVENTS.format(seqs=f"({seqs}) AS s"))
    connection.execute("COMMIT")
    connection.close()


async def fill_postgres(url: str, runs: int) -> None:
    """Insert runs that ended long ago."""
    at = int(time.time() * 1000) - 90 * DAY_MS
    session = await asyncpg.connect(url, server_settings={"search_path": "weft"})
    await session.execute(
        _RUNS.format(events=EVENTS, at=at, series=f"generate_series(1, {runs}) AS c (n)"), timeout=3600
    )
    await session.execute(_EVENTS.format(seqs=f"generate_series(1, {EVENTS}) AS s (seq)"), timeout=3600)
    await session.execute("ANALYZE", timeout=3600)
    await session.close()


async def filled(url: str, runs: int) -> None:
    """Make the tables of a store, and old runs in it."""
    async with new_app(url):
        pass
    if not runs:
        return
    if url.startswith("sqlite:"):
        await asyncio.to_thread(fill_sqlite, Path(url.removeprefix("sqlite:///")), runs)
    else:
        await fill_postgres(url, runs)


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def starts(app: weft.App, count: int, *, until: asyncio.Future[Any] | None = None) -> list[float]:
    """Start runs at a steady pace. Returns the time of each start, in ms."""
    took = []
    while len(took) < count or (until is not None and not until.done()):
        took.append(await timed(lambda: app.start("job")))
        await asyncio.sleep(PACE_SECONDS)
    return took


def p99(samples: list[float]) -> float:
    return round(statistics.quantiles(samples, n=100)[98], 2)


async def delete(url: str, runs: int) -> dict[str, object]:
    """Measure starts before and while old runs are deleted."""
    await filled(url, runs)
    app = new_app(url)
    async with app:
        await starts(app, 50)  # the first ones warm caches
        before = await starts(app, STARTS)
        service = app.service
        background = BackgroundTasks(service.status, lambda _: True)
        background.start()
        duty = RetentionDuty(service.store, service.clock, HostId("bench"), background, POLICY)
        began = time.perf_counter()
        deleting = asyncio.ensure_future(duty._run_pass())
        meanwhile = await starts(app, STARTS, until=deleting)
        await deleting
        seconds = time.perf_counter() - began
        left = (await service.store.retention.size(since=Millis(0))).runs
    return {
        "runs": runs,
        "seconds": round(seconds, 1),
        "starts_before": {"p50": round(statistics.median(before), 2), "p99": p99(before)},
        "starts_meanwhile": {"p50": round(statistics.median(meanwhile), 2), "p99": p99(meanwhile), "n": len(meanwhile)},
        "p99_ratio": round(p99(meanwhile) / p99(before), 2),
        "left": left,
    }


async def large(url: str, runs: int) -> dict[str, object]:
    """Measure lists, starts and the start of a host in a store with many runs."""
    await filled(url, runs)
    app = new_app(url)
    ready = await timed(app.__aenter__)
    try:
        service = app.service
        lists = [await timed(lambda: service.search(RunQuery(limit=50))) for _ in range(20)]
        by_status = [await timed(lambda: service.search(RunQuery(status="completed", limit=50))) for _ in range(20)]
        by_workflow = [await timed(lambda: service.search(RunQuery(workflow="job", limit=50))) for _ in range(20)]
        counted = await timed(service.store.directory.counts)
        await starts(app, 50)
        began = await starts(app, STARTS)
    finally:
        await app.__aexit__(None, None, None)
    return {
        "runs": runs,
        "ready_ms": round(ready),
        "list_ms": round(max(lists), 2),
        "list_status_ms": round(max(by_status), 2),
        "list_workflow_ms": round(max(by_workflow), 2),
        "counts_ms": round(counted),
        "starts": {"p50": round(statistics.median(began), 2), "p99": p99(began)},
    }


async def main(what: str, runs: int, url: str | None) -> None:
    measure = {"delete": delete, "large": large}[what]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        if what == "large":
            found["empty"] = await measure(f"sqlite:///{folder}/empty.db" if url is None else url, 0)
        found[what] = await measure(f"sqlite:///{folder}/weft.db" if url is None else url, runs)
    print(json.dumps(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.retention", description=__doc__)
    parser.add_argument("what", choices=RUNS, nargs="?", default="delete")
    parser.add_argument("runs", type=int, nargs="?")
    parser.add_argument("url", nargs="?")
    given = parser.parse_args()
    runs = RUNS[given.what] if given.runs is None else given.runs
    asyncio.run(main(given.what, runs, given.url))
