"""``python -m bench.viewers``: what a person who watches a busy run on a screen costs its host.

Five pairs of the same run, without and with a viewer of ``GET /runs/{id}/live?as=places``, in turn. It compares the CPU
time per step, which needs a calm machine, and it measures which part of the time the viewer took on the loop.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

import weft
from weft.observe.cpu_time import CpuTime
from weft.server.api import Api
from weft.server.endpoints.run_live import RunWatch
from weft.server.live.frames import LiveFrame

PAIRS = 5
STEPS = 4_000
WIDTH = 50
HEADERS = [(b"host", b"127.0.0.1")]


def make_app(folder: Path) -> weft.App:
    """Return an app with one workflow that performs many small steps."""
    app = weft.App(f"sqlite:///{folder / 'bench.db'}")

    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def busy(ctx: weft.Context, steps: int) -> int:
        for start in range(0, steps, 500):
            await ctx.map("each", work, list(range(start, start + 500)), width=WIDTH)
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


async def measure(app: weft.App, number: int, steps: int, *, watched: bool) -> tuple[float, int, float]:
    """Return the CPU seconds per step, how many messages the viewer got, and its part of the time."""
    cost = CpuTime()
    look = RunWatch.look

    async def measured_look(watch: RunWatch, changed: asyncio.Event) -> list[LiveFrame]:
        return await cost.measure(look(watch, changed))

    run = f"run-{number}-{'watched' if watched else 'alone'}"
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(mock.patch.object(RunWatch, "look", measured_look))
        began, since = time.process_time(), time.perf_counter()
        handle = await app.start("busy", {"steps": steps}, id=run)
        sizes = await stack.enter_async_context(viewer(app.router, run)) if watched else []
        await handle.result()
        share = cost.seconds / (time.perf_counter() - since)
        return (time.process_time() - began) / steps, len(sizes), share


async def compare(pairs: int, steps: int) -> None:
    """Print the cost of a viewer."""
    with tempfile.TemporaryDirectory() as folder:
        app = make_app(Path(folder))
        async with app:
            await measure(app, 0, steps, watched=True)  # warms everything up
            shares, parts = [], []
            for number in range(1, pairs + 1):
                alone, _, _ = await measure(app, number, steps, watched=False)
                watched, messages, part = await measure(app, number, steps, watched=True)
                shares.append(watched / alone - 1)
                parts.append(part)
                print(
                    f"pair {number}: {alone * 1e6:6.1f} µs per step alone, {watched * 1e6:6.1f} µs watched "
                    f"({shares[-1]:+.1%}, {messages} messages, {part:.1%} of the time)"
                )
            print(f"median: {statistics.median(shares):+.1%}, {statistics.median(parts):.1%} of the time")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.viewers")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    asyncio.run(compare(given.pairs, given.steps))


if __name__ == "__main__":
    main()
