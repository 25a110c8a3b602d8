"""Patches of graph runs on SQLite: what the plan and the patch of a run with about 1,000 events take, also in CPU.

A patch after its dry run finds its document compiled; one that is sent at once does not.

``python -m bench.patches [EVENTS]``. The run waits for an answer behind a long chain of nodes, or behind a loop of few.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from typing import Any

import weft

EVENTS = 1_000
REPEATS = 9
EVENTS_PER_NODE = 3


def chain(nodes: int) -> dict[str, Any]:
    """Return a graph of many nodes that ends with a question and a step behind it."""
    steps = {f"n{i}": {"step": "add", "next": f"n{i + 1}" if i + 1 < nodes else "wait"} for i in range(nodes)}
    return {"name": "chain", "nodes": {**steps, **ending()}}


def loop(nodes: int) -> dict[str, Any]:
    """Return a graph of few nodes that takes many rounds before its question."""
    steps: dict[str, Any] = {name: {"step": "add", "next": after} for name, after in zip("abcd", "bcde", strict=True)}
    steps["e"] = {"step": "add", "repeat": {"at_most": nodes // 5, "back_to": "a"}, "next": "wait"}
    return {"name": "loop", "nodes": {**steps, **ending()}}


def ending() -> dict[str, Any]:
    return {"wait": {"ask": {"title": "Go on?"}, "next": "last"}, "last": {"step": "add", "timeout": "1s"}}


async def measure(app: weft.App, name: str) -> None:
    run = await app.start(name, {})
    while (await run.status()) != "running" or not [one async for one in run.events() if one.kind == "ask_opened"]:
        await asyncio.sleep(0.05)
    events = len([one async for one in run.events()])
    planned, applied, at_once, worked = [], [], [], []
    for n in range(REPEATS):
        ops = [{"op": "replace", "path": "/nodes/last/timeout", "value": f"{n + 2}s"}]
        cpu = time.process_time()
        began = time.perf_counter()
        plan = await run.patch(ops, dry_run=True)
        between = time.perf_counter()
        used = time.process_time()
        await run.patch(ops, reason="bench", expect=plan.digest)
        patched = time.perf_counter()
        patched_cpu = time.process_time()
        await run.patch([{"op": "replace", "path": "/nodes/last/timeout", "value": f"{n + 2}m"}], reason="bench")
        worked.append((used - cpu, patched_cpu - used, time.process_time() - patched_cpu))
        planned.append((between - began) * 1e3)
        applied.append((patched - between) * 1e3)
        at_once.append((time.perf_counter() - patched) * 1e3)
    times = zip(
        ("dry run", "patch after it", "patch at once"),
        (planned, applied, at_once),
        zip(*worked, strict=True),
        strict=True,
    )
    shown = [
        f"{what} {statistics.median(took):.0f} ms (CPU {statistics.median(cpu) * 1e3:.0f} ms)"
        for what, took, cpu in times
    ]
    print(f"{name:6} {events:,} events  {'  '.join(shown)}")


async def main(events: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        app = weft.App(f"sqlite:///{folder}/weft.db")

        @app.step
        async def add(input: Any) -> dict[str, int]:
            return {"n": 1}

        for graph in (chain(events // EVENTS_PER_NODE), loop(events // EVENTS_PER_NODE)):
            app.graph(graph)
        async with app:
            for name in ("chain", "loop"):
                await measure(app, name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.patches", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=EVENTS)
    asyncio.run(main(parser.parse_args().events))
