"""``python -m bench.hot``: the hot path beside Postgres alone, in one run: a hop, short runs, runs of 20 steps, hosts.

Both use the same Postgres, which flushes every commit, and the hot path a Valkey with an AOF that is flushed every
second. The hosts of both live side by side and take turns of about a second, so that a busy machine slows both.
Everything shares the machine; the load is printed.
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
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, NamedTuple

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

DRAIN_SECONDS = 0.3
"""How long to wait until what came before a turn, and in it, is drained."""

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
    """Be one host. In each turn: say that it is ready, wait for the word, run everything, and print the figures."""
    app, sequence, times = app_here()
    async with app:

        async def one() -> None:
            await (await app.start(sequence(steps))).result()

        await asyncio.gather(*[one() for _ in range(min(runs, 20))])
        while True:
            await say_and_wait(READY)
            times.clear()
            cpu, began = time.process_time(), time.perf_counter()
            await asyncio.gather(*[one() for _ in range(runs)])
            seconds = time.perf_counter() - began
            gaps = sorted(after - before for before, after in pairwise(times))
            p50 = gaps[len(gaps) // 2] if runs == 1 else 0.0
            figures = {"seconds": seconds, "cpu": time.process_time() - cpu, "p50_ms": p50 * 1000}
            print(DONE, json.dumps(figures), flush=True)


# --- the comparison -----------------------------------------------------------------------------------------------


class Side:
    """One of the two ways: its hosts on a new database, and the figures of its turns."""

    def __init__(self, url: str, redis: RedisServer | None, hosts: int, runs: int, steps: int) -> None:
        self._url = url
        self._redis = redis
        self._transitions = hosts * runs * steps
        env = {postgres.URL: url, "PYTHONPATH": str(ROOT)}
        if redis is not None:
            env |= {"WEFT_REDIS": redis.url, "WEFT_HOT": POLICY}
        self._hosts = [ToldProcess("bench.hot", "--child", runs, steps, env=env) for _ in range(hosts)]
        self.turns: list[Figures] = []

    def take_turn(self) -> None:
        """Let the hosts run everything once, while those of the other side are idle."""
        for host in self._hosts:
            host.wait_for(READY)
        time.sleep(DRAIN_SECONDS)
        redis_cpu, postgres_cpu = _redis_cpu(self._redis), _postgres_cpu(self._url)
        began = time.perf_counter()
        for host in self._hosts:
            host.go()
        figures = [json.loads(host.wait_for(DONE)) for host in self._hosts]
        seconds = time.perf_counter() - began
        time.sleep(DRAIN_SECONDS)
        after = _postgres_cpu(self._url)
        self.turns.append(
            {
                "seconds": seconds,
                "p50_ms": statistics.median(one["p50_ms"] for one in figures),
                "host": sum(one["cpu"] for one in figures),
                "postgres": sum(cpu - postgres_cpu.get(pid, 0.0) for pid, cpu in after.items()),
                "redis": _redis_cpu(self._redis) - redis_cpu,
            }
        )

    def end(self) -> None:
        for host in self._hosts:
            host.end()

    def medians(self) -> Figures:
        """Return the figures of all turns: medians of times, and the CPU of a step over all turns."""
        seconds, transitions = sum(turn["seconds"] for turn in self.turns), self._transitions * len(self.turns)
        cpu = {who: sum(turn[who] for turn in self.turns) for who in ("host", "postgres", "redis")}
        return {
            "steps/s": self._transitions / statistics.median(turn["seconds"] for turn in self.turns),
            "p50_ms": statistics.median(turn["p50_ms"] for turn in self.turns),
            **{f"{who}_us": spent / transitions * 1e6 for who, spent in cpu.items()},
            "cores": sum(cpu.values()) / seconds,
        }


class Comparison(NamedTuple):
    """Both sides of one workload, and the hot path as a share of Postgres alone: medians over pairs of turns."""

    sides: dict[str, Figures]
    speed: float
    p50: float
    postgres_cpu: float


def measure(base: str, redis: RedisServer, turns: int, *size: int) -> Comparison:
    """Let both sides take turns, so that whatever else the machine does slows both."""
    with ExitStack() as stack:
        sides = {}
        for mode in MODES:
            url = stack.enter_context(postgres.database(base, f"{mode}_{os.getpid()}_{time.monotonic_ns()}"))
            hosts, runs, steps = size
            sides[mode] = Side(url, redis if mode == "hot" else None, hosts, runs, steps)
            stack.callback(sides[mode].end)
        for turn in range(turns):
            for mode in MODES if turn % 2 else reversed(MODES):
                sides[mode].take_turn()
    alone, hot = (sides[mode].turns for mode in MODES)
    found = {mode: side.medians() for mode, side in sides.items()}
    return Comparison(
        found,
        speed=statistics.median(one["seconds"] / other["seconds"] for one, other in zip(alone, hot, strict=True)),
        p50=found["hot"]["p50_ms"] / found["postgres"]["p50_ms"] if found["postgres"]["p50_ms"] else 0.0,
        postgres_cpu=found["hot"]["postgres_us"] / found["postgres"]["postgres_us"],
    )


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


def compare(turns: int, *, hosts: bool) -> bool:
    """Print all figures. Returns whether every bar is met."""
    found: dict[str, Comparison] = {}
    with postgres.server() as base:
        redis = RedisServer(aof="everysec").start()
        try:
            for name, *size in plan(hosts):
                found[name] = measure(base, redis, turns, *size)
                _print_figures(name, found[name])
        finally:
            redis.remove()
    for name, one in found.items():
        print(_needed(name, one.sides["hot"]))
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of {turns} turns")
    return _judge(found)


def _print_figures(name: str, comparison: Comparison) -> None:
    for mode, each in comparison.sides.items():
        print(
            f"{name:<27} {mode:<9} {each['steps/s']:>6,.0f} steps/s  p50 {each['p50_ms']:6.3f} ms  CPU per step: "
            f"hosts {each['host_us']:4.0f} µs, Postgres {each['postgres_us']:4.0f}, Redis {each['redis_us']:4.0f}; "
            f"{each['cores']:.2f} cores"
        )
    print(f"{name:<27} of Postgres alone: {comparison.speed:.2f} times the steps/s", flush=True)


def _needed(name: str, each: Figures) -> str:
    """Return what a rate needs by the CPU of one step: whoever has no core left is the limit."""
    cores = {who: each[f"{who}_us"] * RATE / 1e6 for who in ("host", "postgres", "redis")}
    return (
        f"{RATE:,} steps/s like {name} need {cores['host']:.1f} cores in hosts, each of which uses one at most, "
        f"{cores['postgres']:.1f} in Postgres and {cores['redis']:.2f} in Redis"
    )


def _judge(found: dict[str, Comparison]) -> bool:
    ratios = {
        "p50 of a hop": found["hop"].p50,
        "Postgres CPU per transition": found["hop"].postgres_cpu,
        "W2": found["W2"].speed,
        "runs of 20 steps": found["runs of 20 steps"].speed,
    }
    met = True
    for name, (sign, bar) in BARS.items():
        good = ratios[name] <= bar if sign == "≤" else ratios[name] >= bar
        met = met and good
        print(f"{'ok  ' if good else 'MISS'} {name}, of Postgres alone: {ratios[name]:.2f} ({sign} {bar:.2f})")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10, help="how often each side is measured")
    parser.add_argument("--hosts", action=argparse.BooleanOptionalAction, default=True, help="two and three hosts too")
    parser.add_argument("--child", nargs=2, type=int, metavar=("RUNS", "STEPS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        uvloop.run(measured(*given.child))
        return
    sys.exit(0 if compare(given.turns, hosts=given.hosts) else 1)


if __name__ == "__main__":
    main()
