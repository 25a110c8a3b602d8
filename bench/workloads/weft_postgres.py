"""Weft, code workflows on Postgres: the programs of ``weft_code`` as they stand, under another URL and on uvloop.

Beside these: one host and two hosts on the same runs, and the figures that the seeds name.
"""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

import uvloop

from bench.kill import FIXED, record_then_kill, resume
from bench.measure import Meter, Sample, Workload, main, store_url
from bench.postgres import URL, copied, database, execute, server_processes
from bench.told_process import DONE, READY, ToldProcess, say_and_wait
from bench.workloads import weft_code

MODULE = "bench.workloads.weft_postgres"
STEPS_PER_RUN = 3
RESUMPTIONS = 7


def w4(n: int, directory: Path) -> Iterable[Sample]:
    """By difference, as on SQLite; every resumption has a copy of the same database.

    The store is told that the dead host is gone, as an operator may; else that shows when its lease is over, and the
    figure would be the lease.
    """
    fixed, total = _seconds_to_resume(FIXED, directory), _seconds_to_resume(n, directory)
    return [
        Sample("W4", "us_per_step", (total - fixed) / (n - FIXED) * 1e6, n),
        Sample("W4", "seconds", total, n),
        Sample("W4", "seconds", fixed, FIXED),
    ]


def _seconds_to_resume(n: int, directory: Path) -> float:
    """The quickest of some: a difference of two figures this small drowns in what else the machine does."""
    base, name = store_url(), f"killed_{n}_{os.getpid()}"
    taken: list[float] = []
    with database(base, name) as killed:
        os.environ[URL] = killed
        record_then_kill(MODULE, n, directory)
        execute(killed, "DELETE FROM weft.hosts")
        for index in range(RESUMPTIONS):
            os.environ[URL] = copied(base, f"resumed_{index}_{name}", name)
            taken += [sample.value for sample in resume(MODULE, n, directory) if sample.metric == "seconds"]
    os.environ[URL] = base
    return min(taken)


def w4_lease(n: int, directory: Path) -> Iterable[Sample]:
    """The same, but its death has to be noticed."""
    record_then_kill(MODULE, n, directory)
    return [
        Sample("W4", "seconds_with_lease", sample.value, n)
        for sample in resume(MODULE, n, directory)
        if sample.metric == "seconds"
    ]


# --- hosts --------------------------------------------------------------------------------------------------------


def w2_host(n: int, _: Path) -> Iterable[Sample]:
    """One of several hosts: says that it is ready, waits for the word, runs its share, and says so."""

    async def body() -> list[Sample]:
        await say_and_wait(READY)
        await asyncio.gather(*[weft_code.sequence_of(STEPS_PER_RUN) for _ in range(n)])
        await say_and_wait(DONE)
        return []

    return weft_code.hosted(body)


def hosts(count: int) -> Workload:
    """W2 over so many hosts on one database: all runs of all hosts, from the word to the last end.

    And what they used meanwhile of the machine's cores: which of them is the limit.
    """

    def workload(n: int, directory: Path) -> Iterable[Sample]:
        children = [ToldProcess(MODULE, "W2-host", n // count, directory) for _ in range(count)]
        try:
            for child in children:
                child.wait_for(READY)
            server_pids = server_processes(store_url())
            hosts_meter, server_meter = Meter(*(child.pid for child in children)), Meter(*server_pids)
            for child in children:
                child.go()
            for child in children:
                child.wait_for(DONE)
            seconds, cpu_seconds = hosts_meter.seconds, hosts_meter.cpu_seconds
            server_seconds = server_meter.cpu_seconds
        finally:
            for child in children:
                child.end()
        return [
            Sample(f"W2-{count}", "runs_per_s", n / seconds, n),
            Sample(f"W2-{count}", "cores_of_hosts", cpu_seconds / seconds, n),
            Sample(f"W2-{count}", "cores_of_server", server_seconds / seconds, n),
        ]

    return workload


# --- the figures of the seeds ---------------------------------------------------------------------------------------


def seeds(n: int, _: Path) -> Iterable[Sample]:
    """Transitions per second and runs per minute of one host, and the latency of a hop; every event is persisted."""

    async def body() -> list[Sample]:
        hops = 500
        hop_seconds = await weft_code.sequence_of(hops) / hops
        meter = Meter()
        await asyncio.gather(*[weft_code.sequence_of(STEPS_PER_RUN) for _ in range(n)])
        seconds = meter.seconds
        return [
            Sample("seeds", "transitions_per_s", n * (STEPS_PER_RUN + 1) / seconds, n),
            Sample("seeds", "runs_per_minute", n / seconds * 60, n),
            Sample("seeds", "hop_ms", hop_seconds * 1e3, hops),
        ]

    return weft_code.hosted(body)


if __name__ == "__main__":
    # Hosts of many machines are started by `weft serve`, which runs on this loop.
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    main(
        {
            "W1": weft_code.w1,
            "W2": weft_code.w2,
            "W2-latency": weft_code.w2_latency,
            "W2-host": w2_host,
            "W2-1": hosts(1),
            "W2-2": hosts(2),
            "W3": weft_code.w3,
            "W4": w4,
            "W4-lease": w4_lease,
            "W4-record": weft_code.w4_record,
            "W4-resume": weft_code.w4_resume,
            "W5": weft_code.w5,
            "W6": weft_code.w6,
            "seeds": seeds,
        }
    )
