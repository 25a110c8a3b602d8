"""Weft, graph runs on SQLite with ``synchronous=FULL``: every task is durable before and after it is performed.

Written with the public surface only, as a user would write it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import weft
from bench.measure import (
    RESULT,
    Meter,
    Sample,
    directory_given,
    latencies_of,
    main,
    parts_of,
    runs_of,
    seconds_each,
)

app = weft.App(f"sqlite:///{directory_given()}/weft.db")


@app.step
async def noop() -> dict[str, Any]:
    return RESULT


three = app.graph(
    {
        "weft": "graph/1",
        "name": "three",
        "nodes": {
            "a": {"step": "noop", "with": {}, "next": "b"},
            "b": {"step": "noop", "with": {}, "next": "c"},
            "c": {"step": "noop", "with": {}},
        },
    }
)

spread = app.graph(
    {
        "weft": "graph/1",
        "name": "spread",
        "nodes": {
            "list": {"pass": True, "next": [{"to": "work", "for_each": "${input.items}", "as": "it"}]},
            "work": {"step": "noop", "with": {}, "next": "all"},
            "all": {
                "join": "all",
                "pass": True,
                "merge": {"from": "output", "how": "append", "into": "state.all"},
                "save": {"state.n": "${size(state.all)}"},
            },
        },
        "output": {"n": "${state.n}"},
    }
)


def hosted(body: Callable[[], Awaitable[list[Sample]]]) -> list[Sample]:
    async def main_task() -> list[Sample]:
        async with app:
            await run_three()
            await fan_out(3)
            return await body()

    return [replace(sample, style="graph") for sample in asyncio.run(main_task())]


async def run_three() -> None:
    await (await app.start(three, {})).result()


async def fan_out(n: int) -> float:
    started = time.perf_counter()
    handle = await app.start(spread, {"items": list(range(n))})
    assert await handle.result() == {"n": n}
    return time.perf_counter() - started


def g2(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        meter = Meter()
        await asyncio.gather(*[run_three() for _ in range(n)])
        return runs_of("G2", n, 3, meter)

    return hosted(body)


def g2_latency(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        return latencies_of("G2", await seconds_each(n, run_three))

    return hosted(body)


def g3(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        return [Sample("G3", "seconds", await fan_out(n), n)]

    return hosted(body)


def g8(n: int, _: Path) -> Iterable[Sample]:
    """One fan-out."""

    async def body() -> list[Sample]:
        return await parts_of("G8", "branch", n, fan_out)

    return hosted(body)


if __name__ == "__main__":
    main({"G2": g2, "G2-latency": g2_latency, "G3": g3, "G8": g8})
