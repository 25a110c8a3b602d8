"""``python -m bench.schedules [COUNT] [SECONDS]``: what schedules cost while they sleep.

Makes schedules in a new SQLite store, lets a host take all of them up, waits until all are at rest, and then measures
memory and CPU of the process over some time in which none of them fires. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import weft
from weft.core.schedule.calendar import WORKFLOW
from weft.ports.run_query import RunQuery
from weft.runtime.schedule_form import ScheduleForm, make_schedule_spec
from weft.runtime.schedules import ScheduleService

COUNT = 100_000
SECONDS = 60.0
SLEEP_DAYS = 30
MAKERS = 200


def new_app(url: str) -> weft.App:
    app = weft.App(url, durability="fast")

    @app.workflow
    async def job() -> None:
        return

    return app


def form(number: int, base: datetime) -> ScheduleForm:
    """A schedule that fires once a year, at a minute of its own, and not before a month from now."""
    at = base + timedelta(minutes=number % (300 * 24 * 60))
    return ScheduleForm(name=f"s{number}", workflow="job", cron=f"{at.minute} {at.hour} {at.day} {at.month} *")


async def make(url: str, count: int) -> None:
    """Make the schedules without a host: many at a time, so that they share commits."""
    base = datetime.now(UTC) + timedelta(days=SLEEP_DAYS)
    left = iter(range(count))
    async with weft.Client(url) as client:
        schedules = ScheduleService(client.service)

        async def maker() -> None:
            for number in left:
                await schedules.put(f"s{number}", make_schedule_spec(form(number, base)))

        await asyncio.gather(*(maker() for _ in range(MAKERS)))


async def at_rest(app: weft.App) -> None:
    """Wait until every schedule has begun and left memory."""
    service = app.service
    assert service.local is not None
    while True:
        await asyncio.sleep(1.0)
        pending = (await service.search(RunQuery(workflow=WORKFLOW, status="pending", limit=1))).rows
        print(f"  {len(service.local.all()):,} in memory, pending: {bool(pending)}", file=sys.stderr, flush=True)
        if not pending and not service.local.all():
            return


def resident_mb() -> float:
    fields = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in fields if line.startswith("VmRSS")) / 1024


async def measure(count: int, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/weft.db"
        began = time.monotonic()
        await make(url, count)
        made = time.monotonic() - began
        app = new_app(url)
        async with app:
            began = time.monotonic()
            await at_rest(app)
            settled = time.monotonic() - began
            used, began = time.process_time(), time.monotonic()
            await asyncio.sleep(seconds)
            share = (time.process_time() - used) / (time.monotonic() - began)
            return {
                "schedules": count,
                "made_seconds": round(made, 1),
                "settled_seconds": round(settled, 1),
                "resident_mb": round(resident_mb(), 1),
                "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
                "cpu_percent": round(100 * share, 2),
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.schedules", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=COUNT)
    parser.add_argument("seconds", type=float, nargs="?", default=SECONDS)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.count, given.seconds))))
