"""Weft, code workflows on SQLite with ``synchronous=FULL``: every step is durable before the workflow goes on.

Written with the public surface only, as a user would write it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import weft
from bench.kill import announce_recorded, replay_less_fixed
from bench.measure import (
    RESULT,
    Meter,
    Sample,
    directory_given,
    latencies_of,
    main,
    repeats,
    rss_mb,
    runs_of,
    seconds_each,
    steady_of,
    steps_of,
    store_url,
    suspended_of,
)

STARTED_AT_ONCE = 500
RESUMED_ID = "resumed"

app = weft.App(store_url(f"sqlite:///{directory_given()}/weft.db"))
marks: dict[str, float] = {}


@app.step
async def noop() -> dict[str, Any]:
    assert "resuming" not in marks, "a recorded step was performed again"
    return RESULT


@app.step
async def hang() -> None:
    """Behind the history: the process that records stays here until it is killed, the resumed one passes."""
    if "resuming" not in marks:
        announce_recorded()
        await asyncio.sleep(3600)


@app.workflow
async def sequence(ctx: weft.Context, n: int) -> None:
    marks.setdefault(f"{ctx.run_id} entered", time.perf_counter())
    for _ in range(n):
        await noop()
    marks[f"{ctx.run_id} past"] = time.perf_counter()


@app.workflow
async def fan_out(ctx: weft.Context, n: int) -> int:
    return len(await ctx.join("all", {str(index): noop() for index in range(n)}))


@app.workflow
async def asleep(ctx: weft.Context, seconds: float) -> None:
    await ctx.sleep(seconds)


@app.workflow
async def waiting(ctx: weft.Context) -> str:
    # A number and not a set of ids, whose memory would be counted against the runs.
    marks["reached"] = marks.get("reached", 0) + 1
    return await ctx.receive("go", str)


@app.workflow
async def long(ctx: weft.Context, n: int) -> None:
    for _ in range(n):
        await noop()
    marks.setdefault("past", time.perf_counter())
    await hang()


def hosted(body: Callable[[], Awaitable[list[Sample]]]) -> list[Sample]:
    async def main_task() -> list[Sample]:
        async with app:
            await (await app.start(sequence(3))).result()
            return await body()

    return asyncio.run(main_task())


async def sequence_of(n: int) -> float:
    """Run ``n`` steps; the seconds from the first line of the workflow to the last."""
    handle = await app.start(sequence(n))
    await handle.result()
    return marks.pop(f"{handle.id} past") - marks.pop(f"{handle.id} entered")


def w1(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        meter = Meter()
        await sequence_of(n)
        return steps_of("W1", n, meter)

    return hosted(body)


def w2(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        meter = Meter()
        await asyncio.gather(*[sequence_of(3) for _ in range(n)])
        return runs_of("W2", n, 3, meter)

    return hosted(body)


def w2_latency(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        return latencies_of("W2", await seconds_each(n, lambda: sequence_of(3)))

    return hosted(body)


def w3(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        meter = Meter()
        handle = await app.start(fan_out(n))
        assert await handle.result() == n
        return [Sample("W3", "seconds", meter.seconds, n)]

    return hosted(body)


def w4_record(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        await (await app.start(long(n), id=RESUMED_ID)).result()
        return []

    return hosted(body)


def w4_resume(n: int, _: Path) -> Iterable[Sample]:
    async def resumed() -> list[Sample]:
        marks["resuming"] = time.perf_counter()
        async with app:
            await app.get(RESUMED_ID, long).result()
        return [Sample("W4", "seconds", marks["past"] - marks["resuming"], n)]

    return asyncio.run(resumed())


def w5(n: int, _: Path) -> Iterable[Sample]:
    async def one() -> None:
        await (await app.start(asleep(1.0))).result()

    async def body() -> list[Sample]:
        meter = Meter()
        await asyncio.gather(*[one() for _ in range(n)])
        return [Sample("W5", "seconds", meter.seconds, n)]

    return hosted(body)


def w6(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        return steady_of(n, [await sequence_of(n) for _ in range(repeats(n))])

    return hosted(body)


def w7(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        before = rss_mb()
        last = await app.start(waiting())
        for started in range(1, n, STARTED_AT_ONCE):
            await asyncio.gather(*[app.start(waiting()) for _ in range(min(STARTED_AT_ONCE, n - started))])
        while marks.get("reached", 0) < n:
            await asyncio.sleep(0.1)
        found = await suspended_of(n, before)
        await last.send("go", "on")
        assert await last.result() == "on"
        return found

    return hosted(body)


if __name__ == "__main__":
    main(
        {
            "W1": w1,
            "W2": w2,
            "W2-latency": w2_latency,
            "W3": w3,
            "W4": replay_less_fixed("bench.workloads.weft_code"),
            "W4-record": w4_record,
            "W4-resume": w4_resume,
            "W5": w5,
            "W6": w6,
            "W7": w7,
        }
    )
