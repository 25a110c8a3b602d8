"""DBOS on SQLite or Postgres with its defaults: async workflows and steps in one process, every step one durable row.

DBOS asks for SQLite 3.42 or newer, which many systems lack, so pysqlite3's own copy stands in for ``sqlite3``.
"""

import asyncio
import sys
import time
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

import pysqlite3  # type: ignore[import-not-found]

from bench.kill import announce_recorded, replay_inside
from bench.measure import (
    RESULT,
    Meter,
    Sample,
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
from bench.peers.sealed import seal

# Before dbos is imported, because SQLAlchemy takes whatever goes by this name.
sys.modules["sqlite3"] = pysqlite3
sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

from dbos import DBOS, SetWorkflowID  # type: ignore[import-not-found]  # noqa: E402

RESUMED_ID = "resumed"
marks: dict[str, float] = {}
recording: list[bool] = []


async def _noop() -> dict[str, Any]:
    return RESULT


async def _hang() -> None:
    if recording:
        announce_recorded()
        await asyncio.sleep(3600)


noop = DBOS.step(name="noop")(_noop)
hang = DBOS.step(name="hang")(_hang)


async def _sequence(n: int) -> float:
    started = time.perf_counter()
    for _ in range(n):
        await noop()
    return time.perf_counter() - started


async def _fan_out(n: int) -> int:
    return len(await asyncio.gather(*[noop() for _ in range(n)]))


async def _asleep(seconds: float) -> None:
    await DBOS.sleep_async(seconds)


async def _waiting() -> Any:
    return await DBOS.recv_async("go", timeout_seconds=3600)


async def _long(n: int) -> None:
    marks["entered"] = time.perf_counter()
    for _ in range(n):
        await noop()
    marks["past"] = time.perf_counter()
    await hang()


sequence = DBOS.workflow(name="sequence")(_sequence)
fan_out = DBOS.workflow(name="fan_out")(_fan_out)
asleep = DBOS.workflow(name="asleep")(_asleep)
waiting = DBOS.workflow(name="waiting")(_waiting)
long = DBOS.workflow(name="long")(_long)


def launched(directory: Path, body: Coroutine[Any, Any, list[Sample]]) -> list[Sample]:
    async def main_task() -> list[Sample]:
        marks["launched"] = time.perf_counter()
        DBOS(
            config={
                "name": "bench",
                "system_database_url": store_url(f"sqlite:///{directory}/dbos.sqlite"),
                "application_version": "1",
                "executor_id": "bench",
                "log_level": "ERROR",
                "enable_otlp": False,
            }
        )
        DBOS.launch()
        try:
            return await body
        finally:
            DBOS.destroy()

    return asyncio.run(main_task())


async def result_of(workflow: Any, *args: Any) -> Any:
    handle = await DBOS.start_workflow_async(workflow, *args)
    return await handle.get_result()


async def all_of(n: int, workflow: Any, *args: Any) -> None:
    await asyncio.gather(*[result_of(workflow, *args) for _ in range(n)])


def w1(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        await result_of(sequence, 3)
        meter = Meter()
        await result_of(sequence, n)
        return steps_of("W1", n, meter)

    return launched(directory, body())


def w2(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        await result_of(sequence, 3)
        meter = Meter()
        await all_of(n, sequence, 3)
        return runs_of("W2", n, 3, meter)

    return launched(directory, body())


def w2_latency(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        await result_of(sequence, 3)
        return latencies_of("W2", await seconds_each(n, lambda: result_of(sequence, 3)))

    return launched(directory, body())


def w3(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        await result_of(fan_out, 3)
        meter = Meter()
        await result_of(fan_out, n)
        return [Sample("W3", "seconds", meter.seconds, n)]

    return launched(directory, body())


def w4_record(n: int, directory: Path) -> Iterable[Sample]:
    recording.append(True)

    async def body() -> list[Sample]:
        with SetWorkflowID(RESUMED_ID):
            await result_of(long, n)
        return []

    return launched(directory, body())


def w4_resume(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        # Recovery runs on a loop of DBOS's own, so there is nothing here to await.
        while "past" not in marks:
            await asyncio.sleep(0.001)
        return [
            Sample("W4", "us_per_step", (marks["past"] - marks["entered"]) / n * 1e6, n),
            Sample("W4", "seconds", marks["past"] - marks["launched"], n),
        ]

    return launched(directory, body())


def w5(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        await result_of(sequence, 3)
        meter = Meter()
        await all_of(n, asleep, 1.0)
        return [Sample("W5", "seconds", meter.seconds, n)]

    return launched(directory, body())


def w6(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        await result_of(sequence, 3)
        return steady_of(n, [await result_of(sequence, n) for _ in range(repeats(n))])

    return launched(directory, body())


def w7(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        await result_of(sequence, 3)
        before = rss_mb()
        for _ in range(n):
            await DBOS.start_workflow_async(waiting)
        return await suspended_of(n, before)

    return launched(directory, body())


if __name__ == "__main__":
    seal()
    main(
        {
            "W1": w1,
            "W2": w2,
            "W2-latency": w2_latency,
            "W3": w3,
            "W4": replay_inside("bench.peers.dbos_bench"),
            "W4-record": w4_record,
            "W4-resume": w4_resume,
            "W5": w5,
            "W6": w6,
            "W7": w7,
        }
    )
