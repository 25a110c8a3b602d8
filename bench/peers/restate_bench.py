"""Restate with its defaults: one server, one service process, an HTTP client over the ingress; fsync is on.

CPU and memory are those of server and service together (and of the client, for CPU). W4 kills the service process;
its ``seconds`` start at the kill and hold the new process's start and the server's back-off.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import aiohttp  # type: ignore[import-not-found]

from bench.load import accepted_of, open_files_many, pour
from bench.measure import (
    Meter,
    Sample,
    cpu_seconds_of,
    latencies_of,
    main,
    quiet,
    repeats,
    rss_mb,
    runs_of,
    seconds_each,
    steady_of,
    steps_of,
    suspended_of,
)
from bench.peers.restate_server import Restate, running
from bench.peers.sealed import seal

Call = Callable[[str, Any], Awaitable[Any]]
Body = Callable[[Restate, Call], Awaitable[list[Sample]]]


def served(
    directory: Path, body: Body, *, server_env: dict[str, str] | None = None, service_env: dict[str, str] | None = None
) -> list[Sample]:
    async def main_task(restate: Restate) -> list[Sample]:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

            async def call(handler: str, given: Any) -> Any:
                async with session.post(restate.url(handler), json=given) as answer:
                    answer.raise_for_status()
                    text = await answer.read()
                    return json.loads(text) if text else None

            await _until_settled(restate, call)
            return await body(restate, call)

    with running(directory, server_env=server_env or {}, service_env=service_env or {}) as restate:
        return asyncio.run(main_task(restate))


async def _until_settled(restate: Restate, call: Call) -> None:
    """Warm up, and let the server finish what it does after its start, which would be counted against it."""
    for _ in range(20):
        await call("sequence", 3)
    await quiet(*restate.pids, share=0.1, seconds_max=5.0)


def w1(n: int, directory: Path) -> Iterable[Sample]:
    async def body(restate: Restate, call: Call) -> list[Sample]:
        meter = Meter(*restate.pids)
        await call("sequence", n)
        return steps_of("W1", n, meter)

    return served(directory, body)


def w2(n: int, directory: Path) -> Iterable[Sample]:
    async def body(restate: Restate, call: Call) -> list[Sample]:
        meter = Meter(*restate.pids)
        await asyncio.gather(*[call("sequence", 3) for _ in range(n)])
        return runs_of("W2", n, 3, meter)

    return served(directory, body)


def w2_latency(n: int, directory: Path) -> Iterable[Sample]:
    async def body(_: Restate, call: Call) -> list[Sample]:
        async def once() -> None:
            await call("sequence", 3)

        return latencies_of("W2", await seconds_each(n, once))

    return served(directory, body)


def w3(n: int, directory: Path) -> Iterable[Sample]:
    async def body(_: Restate, call: Call) -> list[Sample]:
        await call("fan_out", 3)
        meter = Meter()
        await call("fan_out", n)
        return [Sample("W3", "seconds", meter.seconds, n)]

    return served(directory, body)


def w4(n: int, directory: Path) -> Iterable[Sample]:
    recorded, marks = directory / "recorded", directory / "marks.json"

    async def body(restate: Restate, call: Call) -> list[Sample]:
        waiting = asyncio.ensure_future(call("long", n))
        while not recorded.exists():
            await asyncio.sleep(0.01)
        killed = time.perf_counter()
        restate.kill_service()
        restate.start_service(BENCH_MARKS=str(marks))
        await waiting
        at = json.loads(marks.read_text())
        return [
            Sample("W4", "us_per_step", (at["past"] - at["entered"]) / n * 1e6, n),
            Sample("W4", "seconds", at["past"] - killed, n),
        ]

    return served(directory, body, service_env={"BENCH_RECORDED": str(recorded)})


def w5(n: int, directory: Path) -> Iterable[Sample]:
    async def body(_: Restate, call: Call) -> list[Sample]:
        meter = Meter()
        await asyncio.gather(*[call("asleep", 1.0) for _ in range(n)])
        return [Sample("W5", "seconds", meter.seconds, n)]

    return served(directory, body)


def w6(n: int, directory: Path) -> Iterable[Sample]:
    async def body(_: Restate, call: Call) -> list[Sample]:
        return steady_of(n, [await call("sequence", n) for _ in range(repeats(n))])

    return served(directory, body)


def w7(n: int, directory: Path) -> Iterable[Sample]:
    async def body(restate: Restate, call: Call) -> list[Sample]:
        before = rss_mb(*restate.pids)
        for started in range(0, n, 500):
            await asyncio.gather(*[call("waiting/send", 0) for _ in range(min(500, n - started))])
        return await suspended_of(n, before, *restate.pids)

    # The default of a minute keeps the streams of the first thousand invocations open instead of suspending them.
    return served(directory, body, server_env={"RESTATE_WORKER__INVOKER__INACTIVITY_TIMEOUT": "1s"})


def ingress(n: int, directory: Path) -> Iterable[Sample]:
    """Starts that are not waited for: the ingress answers when an invocation is durable."""

    async def body(restate: Restate, _: Call) -> list[Sample]:
        url = restate.url("sequence/send")
        await asyncio.to_thread(pour, url, "1", 200)
        before, began = sum(map(cpu_seconds_of, restate.pids)), time.perf_counter()
        load = await asyncio.to_thread(pour, url, "1", n)
        while await asyncio.to_thread(restate.open_count):
            await asyncio.sleep(0.02)
        seconds = time.perf_counter() - began
        cpu_seconds = sum(map(cpu_seconds_of, restate.pids)) - before
        return accepted_of(load, finished_seconds=seconds, cpu_seconds=cpu_seconds)

    return served(directory, body)


if __name__ == "__main__":
    seal()
    open_files_many()
    main(
        {
            "W1": w1,
            "W2": w2,
            "W2-latency": w2_latency,
            "W3": w3,
            "W4": w4,
            "W5": w5,
            "W6": w6,
            "W7": w7,
            "ingress": ingress,
        }
    )
