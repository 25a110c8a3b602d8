"""``python -m bench.viewers``: what a person who watches a busy run on a screen costs its host.

Pairs of the same run, without and with a viewer of ``GET /runs/{id}/live?as=places``; which of them comes first changes
from pair to pair. It compares the CPU time of the process per step, in all its threads, which needs a calm machine. It
also adds up the CPU time of what is done for the viewer alone, its looks and its reads of the log, which needs none.
Only the time in which the run is busy counts: when it ends, its viewer is shown at once what was left for later.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import weft
from weft.observe.cpu_time import CpuTime
from weft.server.api import Api
from weft.server.endpoints.run_live import RunWatch
from weft.server.live.frames import LiveFrame
from weft.stores.sqlite import log as sqlite_log

PAIRS = 7
STEPS = 20_000
WIDTH = 50
PIECE = 500
PERCENT_MAX = 2.0
HEADERS = [(b"host", b"127.0.0.1")]


class Clock:
    """The CPU time of the process and that of the viewer, whenever a part of a run begins."""

    def __init__(self) -> None:
        self.cost = CpuTime()
        self.marks: list[tuple[float, float]] = []

    def note(self) -> None:
        self.marks.append((time.process_time(), self.cost.seconds))

    def busy(self) -> tuple[float, float]:
        """Return the CPU time of the process and of the viewer, from the second part to the last one."""
        (begin, begin_cost), (end, end_cost) = self.marks[1], self.marks[-1]
        return end - begin, end_cost - begin_cost


clock = Clock()


def make_app(folder: Path) -> weft.App:
    """Return an app with one workflow that performs many small steps."""
    app = weft.App(f"sqlite:///{folder / 'bench.db'}")

    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def busy(ctx: weft.Context, steps: int) -> int:
        for start in range(0, steps, PIECE):
            clock.note()
            await ctx.map("each", work, list(range(start, start + PIECE)), width=WIDTH)
        return steps

    return app


@contextlib.asynccontextmanager
async def viewer(api: Api, run: str) -> AsyncIterator[list[int]]:
    """Watch a run through the API, as its ASGI server would. Yields a list that grows by the size of each message."""
    path = f"/api/v1/runs/{run}/live"
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"as=places",
        "headers": HEADERS,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sizes: list[int] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(message: Any) -> None:
        sizes.append(len(message.get("body", b"")))

    watching = asyncio.create_task(api(scope, receive, send))
    try:
        yield sizes
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


class Measured(NamedTuple):
    """One run: CPU seconds per step, the part of them that went to its viewer, and how many messages the viewer got."""

    per_step: float
    part: float
    messages: int


@contextlib.contextmanager
def viewer_cost(cost: CpuTime) -> Iterator[None]:
    """Add up what is done for viewers: their looks on the loop, and what they read of the log in threads."""
    look, events = RunWatch.look, sqlite_log._read_events

    async def measured_look(watch: RunWatch, changed: asyncio.Event) -> list[LiveFrame]:
        return await cost.measure(look(watch, changed))

    def measured_events(*given: Any) -> Any:
        began = time.thread_time()
        try:
            return events(*given)
        finally:
            cost.seconds += time.thread_time() - began

    with (
        mock.patch.object(RunWatch, "look", measured_look),
        mock.patch.object(sqlite_log, "_read_events", measured_events),
    ):
        yield


async def measure(app: weft.App, number: int, steps: int, *, watched: bool) -> Measured:
    """Perform a run, with or without a viewer."""
    run = f"run-{number}-{'watched' if watched else 'alone'}"
    gc.collect()
    clock.__init__()  # type: ignore[misc]  # begins anew
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(viewer_cost(clock.cost))
        handle = await app.start("busy", {"steps": steps}, id=run)
        sizes = await stack.enter_async_context(viewer(app.router, run)) if watched else []
        await handle.result()
        spent, cost = clock.busy()
        return Measured(spent / (steps - 2 * PIECE), cost / spent, len(sizes))


async def compare(pairs: int, steps: int) -> None:
    """Print the cost of a viewer."""
    with tempfile.TemporaryDirectory() as folder:
        app = make_app(Path(folder))
        async with app:
            await measure(app, 0, steps, watched=True)  # warms everything up
            rises, parts = [], []
            for number in range(1, pairs + 1):
                first = await measure(app, number, steps, watched=number % 2 == 0)
                second = await measure(app, number, steps, watched=number % 2 == 1)
                alone, watched = (first, second) if number % 2 else (second, first)
                rises.append(100 * (watched.per_step / alone.per_step - 1))
                parts.append(100 * watched.part)
                print(
                    f"pair {number}: {alone.per_step * 1e6:6.1f} µs of CPU time per step alone, "
                    f"{watched.per_step * 1e6:6.1f} µs watched ({rises[-1]:+.1f} %); "
                    f"{parts[-1]:.2f} % for the viewer, {watched.messages} messages",
                    flush=True,
                )
    low, _, high = statistics.quantiles(rises, n=4)
    print(f"medians: {statistics.median(rises):+.1f} % (half of the pairs from {low:+.1f} to {high:+.1f} %)")
    print(f"  {statistics.median(parts):.2f} % of the CPU time for the viewer, goal below {PERCENT_MAX} %")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.viewers")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    asyncio.run(compare(given.pairs, given.steps))


if __name__ == "__main__":
    main()
