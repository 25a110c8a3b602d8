"""``python -m bench.hot``: the hot path beside Postgres alone, in one run: a hop, short runs, runs of 20 steps, hosts.

Both use the same Postgres, which flushes every commit, and the hot path a Valkey with an AOF that is flushed every
second. Rounds alternate, so that a busy machine slows both. Everything shares the machine; the load is printed.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import uvloop

import weft
from bench import postgres
from bench.measure import RESULT, ROOT, cpu_seconds_of
from bench.told_process import DONE, READY, ToldProcess, say_and_wait
from tests.redis_server import RedisServer

MODES = ("postgres", "hot")
POLICY = "event"
HOPS = 2_000
SHORT_RUNS, SHORT_STEPS = 1_000, 3
LONG_RUNS, LONG_STEPS = 200, 20
HOSTS = (2, 3)
RATE = 10_000
"""Steps per second for which the cores are printed that the hot path would need."""
BARS = {
    "p50 of a hop": ("≤", 0.5),
    "Postgres CPU per transition": ("≤", 1 / 3),
    "W2": ("≥", 0.8),
    "runs of 20 steps": ("≥", 1.0),
}

Figures = dict[str, float]

# --- a measured process -------------------------------------------------------------------------------------------


def app_here() -> tuple[weft.App, Any, list[float]]:
    """Return the app of a measured process, its workflow, and when each step of it was performed."""
    app = weft.App(os.environ[postgres.URL])
    times: list[float] = []

    @app.step
    async def noop() -> dict[str, Any]:
        times.append(time.perf_counter())
        return RESULT

    @app.workflow
    async def sequence(ctx: weft.Context, n: int) -> None:
        for _ in range(n):
            await noop()

    return app, sequence, times


async def measured(runs: int, steps: int) -> None:
    """Be one host: say that it is ready, wait for the word, run everything, and print the figures."""
    app, sequence, times = app_here()
    async with app:
        await asyncio.gather(*[(await app.start(sequence(steps))).result() for _ in range(min(runs, 20))])
        await asyncio.sleep(0.5)  # until what came before is drained
        await say_and_wait(READY)
        times.clear()
        cpu, began = time.process_time(), time.perf_counter()

        async def one() -> None:
            await (await app.start(sequence(steps))).result()

        await asyncio.gather(*[one() for _ in range(runs)])
        seconds = time.perf_counter() - began
        gaps = sorted(after - before for before, after in pairwise(times))
        p50 = gaps[len(gaps) // 2] if runs == 1 else 0.0
        figures = {"seconds": seconds, "cpu": time.process_time() - cpu, "p50_ms": p50 * 1000}
        await say_and_wait(DONE, json.dumps(figures))


# --- the comparison -----------------------------------------------------------------------------------------------


def measure(base: str, redis: RedisServer | None, hosts: int, runs: int, steps: int) -> Figures:
    """Measure so many hosts on a new database: steps per second, and what each transition costs everybody."""
    with postgres.database(base, f"hot_{os.getpid()}_{time.monotonic_ns()}") as url:
        env = {postgres.URL: url, "PYTHONPATH": str(ROOT)}
        if redis is not None:
            env |= {"WEFT_REDIS": redis.url, "WEFT_HOT": POLICY}
        children = [ToldProcess("bench.hot", "--child", runs, steps, env=env) for _ in range(hosts)]
        try:
            for child in children:
                child.wait_for(READY)
            redis_cpu = _redis_cpu(redis)
            before = _postgres_cpu(url)
            began = time.perf_counter()
            for child in children:
                child.go()
            figures = [json.loads(child.wait_for(DONE)) for child in children]
            seconds = time.perf_counter() - began
            time.sleep(0.5)  # until everything is drained
            postgres_cpu = sum(_postgres_cpu(url).values()) - sum(before.values())
            redis_cpu = _redis_cpu(redis) - redis_cpu
        finally:
            for child in children:
                child.end()
    transitions = hosts * runs * steps
    hosts_cpu = sum(one["cpu"] for one in figures)
    return {
        "steps/s": transitions / seconds,
        "p50_ms": statistics.median(one["p50_ms"] for one in figures),
        "host_us": hosts_cpu / transitions * 1e6,
        "postgres_us": postgres_cpu / transitions * 1e6,
        "redis_us": redis_cpu / transitions * 1e6,
        "cores": (hosts_cpu + postgres_cpu + redis_cpu) / seconds,
    }


def _postgres_cpu(url: str) -> dict[int, float]:
    found: dict[int, float] = {}
    for pid in postgres.server_processes(url):
        with contextlib.suppress(OSError):
            found[pid] = cpu_seconds_of(pid)
    return found


def _redis_cpu(redis: RedisServer | None) -> float:
    if redis is None:
        return 0.0
    about = dict(line.split(":", 1) for line in str(redis.command("INFO", "server")).splitlines() if ":" in line)
    return cpu_seconds_of(int(about["process_id"]))


def plan(hosts: bool) -> Iterator[tuple[str, int, int, int]]:
    """Return what is measured: the name, the hosts, the runs of each and the steps of each run."""
    yield "hop", 1, 1, HOPS
    yield "W2", 1, SHORT_RUNS, SHORT_STEPS
    yield "runs of 20 steps", 1, LONG_RUNS, LONG_STEPS
    for count in HOSTS if hosts else ():
        yield f"{count} hosts, runs of 20 steps", count, LONG_RUNS, LONG_STEPS


def compare(rounds: int, *, hosts: bool) -> bool:
    """Print all figures. Returns whether every bar is met."""
    found: dict[str, dict[str, list[Figures]]] = {}
    with postgres.server() as base:
        redis = RedisServer(aof="everysec").start()
        try:
            for _ in range(rounds):
                for name, *size in plan(hosts):
                    for mode in MODES:
                        figures = measure(base, redis if mode == "hot" else None, *size)
                        found.setdefault(name, {}).setdefault(mode, []).append(figures)
        finally:
            redis.kill()
    medians = {
        name: {mode: {key: statistics.median(one[key] for one in each) for key in each[0]} for mode, each in by.items()}
        for name, by in found.items()
    }
    for name, by in medians.items():
        for mode, each in by.items():
            print(
                f"{name:<27} {mode:<9} {each['steps/s']:>6,.0f} steps/s  p50 {each['p50_ms']:6.3f} ms  CPU per step: "
                f"hosts {each['host_us']:4.0f} µs, Postgres {each['postgres_us']:4.0f}, Redis {each['redis_us']:4.0f}; "
                f"{each['cores']:.2f} cores"
            )
    for name, by in medians.items():
        print(_needed(name, by["hot"]))
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {rounds} rounds, medians")
    return _judge(medians)


def _needed(name: str, each: Figures) -> str:
    """Return what a rate needs by the CPU of one step: whoever has no core left is the limit."""
    cores = {who: each[f"{who}_us"] * RATE / 1e6 for who in ("host", "postgres", "redis")}
    return (
        f"{RATE:,} steps/s like {name} need {cores['host']:.1f} cores in hosts, each of which uses one at most, "
        f"{cores['postgres']:.1f} in Postgres and {cores['redis']:.2f} in Redis"
    )


def _judge(medians: dict[str, dict[str, Figures]]) -> bool:
    def ratio(name: str, key: str) -> float:
        return medians[name]["hot"][key] / medians[name]["postgres"][key]

    ratios = {
        "p50 of a hop": ratio("hop", "p50_ms"),
        "Postgres CPU per transition": ratio("hop", "postgres_us"),
        "W2": ratio("W2", "steps/s"),
        "runs of 20 steps": ratio("runs of 20 steps", "steps/s"),
    }
    met = True
    for name, (sign, bar) in BARS.items():
        good = ratios[name] <= bar if sign == "≤" else ratios[name] >= bar
        met = met and good
        print(f"{'ok  ' if good else 'MISS'} {name}, of Postgres alone: {ratios[name]:.2f} ({sign} {bar:.2f})")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", action=argparse.BooleanOptionalAction, default=True, help="two and three hosts too")
    parser.add_argument("--child", nargs=2, type=int, metavar=("RUNS", "STEPS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        uvloop.run(measured(*given.child))
        return
    sys.exit(0 if compare(given.rounds, hosts=given.hosts) else 1)


if __name__ == "__main__":
    main()
