"""The floor: the least a durable engine in Python can cost, to say how much Weft adds to it.

One journal table; every start, step, timer and end is awaited until it is committed; one commit per tick of the event
loop, made in the loop itself. It has no leases, queues, retries, status, indexes, versions or replay checks, so it is
a limit to approach and not an engine to use.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import msgspec

from bench.kill import announce_recorded, replay_less_fixed
from bench.measure import (
    RESULT,
    Meter,
    Sample,
    latencies_of,
    main,
    repeats,
    runs_of,
    seconds_each,
    steady_of,
    steps_of,
)

CLIENTS = 16


class Journal:
    """Rows of all runs, committed in groups: what is appended during one tick shares one transaction."""

    def __init__(self, directory: Path) -> None:
        self._db = apsw.Connection(str(directory / "floor.db"))
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = full")
        self._db.execute("create table if not exists log (run text, seq int, body blob, primary key (run, seq))")
        self._rows: list[tuple[str, int, bytes]] = []
        self._committed: asyncio.Future[None] | None = None

    def append(self, run: str, seq: int, body: object) -> Awaitable[None]:
        self._rows.append((run, seq, msgspec.json.encode(body)))
        if self._committed is None:
            loop = asyncio.get_running_loop()
            self._committed = loop.create_future()
            loop.call_soon(self._commit)
        return self._committed

    def load(self, run: str) -> list[Any]:
        rows = self._db.execute("select body from log where run = ? order by seq", (run,))
        return [msgspec.json.decode(body) for (body,) in rows]

    def _commit(self) -> None:
        rows, self._rows = self._rows, []
        committed, self._committed = self._committed, None
        self._db.execute("begin immediate")
        self._db.executemany("insert into log values (?, ?, ?)", rows)
        self._db.execute("commit")
        assert committed is not None
        committed.set_result(None)


class Run:
    """One execution: answers from its history while there is any, and appends to it after that."""

    def __init__(self, journal: Journal, run_id: str) -> None:
        self._journal, self._id, self._seq = journal, run_id, 0
        self._history = journal.load(run_id)

    async def step(self, perform: Callable[[], Awaitable[Any]]) -> Any:
        seq, self._seq = self._seq, self._seq + 1
        if seq < len(self._history):
            return self._history[seq]["result"]
        result = await perform()
        await self._journal.append(self._id, seq, {"type": "step", "name": "noop", "result": result})
        return result

    async def sleep(self, seconds: float) -> None:
        await self.step(lambda: _value(time.time() + seconds))
        await self.step(lambda: asyncio.sleep(seconds))


async def _value(value: object) -> object:
    return value


async def noop() -> dict[str, Any]:
    return RESULT


async def sequence(journal: Journal, run_id: str, n: int) -> float:
    run = Run(journal, run_id)
    await run.step(lambda: _value("started"))
    started = time.perf_counter()
    for _ in range(n):
        await run.step(noop)
    elapsed = time.perf_counter() - started
    await run.step(lambda: _value("completed"))
    return elapsed


def w1(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        journal = Journal(directory)
        await sequence(journal, "warm", 3)
        meter = Meter()
        await sequence(journal, "one", n)
        return steps_of("W1", n, meter)

    return asyncio.run(body())


def w2(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        journal = Journal(directory)
        await sequence(journal, "warm", 3)
        meter = Meter()
        await asyncio.gather(*[sequence(journal, str(index), 3) for index in range(n)])
        at_once = runs_of("W2", n, 3, meter)
        todo = iter(range(n, 2 * n))

        async def client() -> None:
            for index in todo:
                await sequence(journal, str(index), 3)

        meter = Meter()
        await asyncio.gather(*[client() for _ in range(CLIENTS)])
        # Runs in lock-step share five commits in all, which flatters; sixteen clients do not.
        return at_once + [replace(sample, style=f"clients-{CLIENTS}") for sample in runs_of("W2", n, 3, meter)]

    return asyncio.run(body())


def w2_latency(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        journal = Journal(directory)
        ids = iter(range(n))
        return latencies_of("W2", await seconds_each(n, lambda: sequence(journal, str(next(ids)), 3)))

    return asyncio.run(body())


def w3(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        run = Run(Journal(directory), "one")
        meter = Meter()
        await asyncio.gather(*[run.step(noop) for _ in range(n)])
        return [Sample("W3", "seconds", meter.seconds, n)]

    return asyncio.run(body())


async def _hang() -> None:
    announce_recorded()
    await asyncio.sleep(3600)


def w4_record(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        run = Run(Journal(directory), "one")
        for _ in range(n):
            await run.step(noop)
        await run.step(_hang)
        return []

    return asyncio.run(body())


def w4_resume(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        meter = Meter()
        run = Run(Journal(directory), "one")
        for _ in range(n):
            await run.step(noop)
        return [Sample("W4", "seconds", meter.seconds, n)]

    return asyncio.run(body())


def w5(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        journal = Journal(directory)
        meter = Meter()
        await asyncio.gather(*[Run(journal, str(index)).sleep(1.0) for index in range(n)])
        return [Sample("W5", "seconds", meter.seconds, n)]

    return asyncio.run(body())


def w6(n: int, directory: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        journal = Journal(directory)
        await sequence(journal, "warm", 3)
        return steady_of(n, [await sequence(journal, str(index), n) for index in range(repeats(n))])

    return asyncio.run(body())


if __name__ == "__main__":
    main(
        {
            "W1": w1,
            "W2": w2,
            "W2-latency": w2_latency,
            "W3": w3,
            "W4": replay_less_fixed("bench.workloads.floor"),
            "W4-record": w4_record,
            "W4-resume": w4_resume,
            "W5": w5,
            "W6": w6,
        }
    )
