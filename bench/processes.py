"""``python -m bench.processes``: how much more several processes of ``weft serve`` do than one, on one store.

Every round starts the same runs over HTTP, each with many steps, on a server of one process and on one of several, and
counts the steps per second until the last run has ended. Rounds alternate, so a busy machine slows both. Server, store
and generator share the machine; the generator needs little, since the steps of a run are performed by the server.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import postgres
from bench.load import pour
from bench.measure import ROOT, SCRATCH
from bench.peers.restate_server import free_ports
from bench.workloads.weft_ingress import Server, runs_open, wait_until_answered

APP = "bench/workloads/weft_served.py"
RATIOS_MIN = {"sqlite": 1.25, "postgres": 1.6}
STEPS = 50
CONNECTIONS = 128
WARM_UP = 64
START_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05


@contextmanager
def serving(url: str, processes: int, directory: Path) -> Iterator[Server]:
    """Run ``weft serve`` with this number of processes for the length of the block."""
    (port,) = free_ports(1)
    command = [str(Path(sys.executable).parent / "weft"), "serve", APP, "--processes", str(processes)]
    env = os.environ | {"BENCH_SERVED": url, "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    log = directory / f"server-{processes}.log"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "--port", str(port)], cwd=ROOT, env=env, stdout=output, stderr=output)
    try:
        while "serving" not in log.read_text():
            if process.poll() is not None or time.perf_counter() - began > START_SECONDS_MAX:
                raise RuntimeError(log.read_text())
            time.sleep(POLL_SECONDS)
        wait_until_answered(f"http://127.0.0.1:{port}/readyz", began + START_SECONDS_MAX)
        yield Server(f"http://127.0.0.1:{port}", process.pid, time.perf_counter() - began)
    finally:
        process.terminate()
        process.wait()


def steps_per_second(url: str, processes: int, runs: int, directory: Path) -> float:
    """Measure one server on a new store."""
    body = f'{{"workflow": "sequence", "input": {{"n": {STEPS}}}}}'
    with serving(url, processes, directory) as server:
        for n in (WARM_UP, runs):
            began = time.perf_counter()
            pour(server.runs, body, n, CONNECTIONS)
            while runs_open(server):
                time.sleep(POLL_SECONDS)
            seconds = time.perf_counter() - began
    return runs * STEPS / seconds


def compare(store: str, processes: int, rounds: int, runs: int) -> float:
    """Print the figures of one store. Returns how many times as much several processes do as one."""
    figures: dict[int, list[float]] = {1: [], processes: []}
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with postgres.server() if store == "postgres" else _no_server() as base:
        for number in range(rounds):
            for count, each in figures.items():
                with tempfile.TemporaryDirectory(dir=SCRATCH) as place, _store(base, place, count, number) as url:
                    each.append(steps_per_second(url, count, runs, Path(place)))
    for count, each in figures.items():
        print(f"{store:<9} {count} processes {statistics.median(each):>9,.0f} steps/s  {[round(one) for one in each]}")
    return statistics.median(figures[processes]) / statistics.median(figures[1])


@contextmanager
def _no_server() -> Iterator[str]:
    yield ""


@contextmanager
def _store(base: str, place: str, count: int, number: int) -> Iterator[str]:
    if not base:
        yield f"sqlite:///{place}/weft.db"
        return
    with postgres.database(base, f"processes_{count}_{number}") as url:
        yield url


def main() -> int:
    """Compare on both stores. Returns 1 if one gains less than it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--store", choices=sorted(RATIOS_MIN), action="append")
    given = parser.parse_args()
    missed = 0
    for store in given.store or sorted(RATIOS_MIN):
        ratio = compare(store, given.processes, given.rounds, given.runs)
        print(f"{store:<9} {ratio:.2f} times one process; at least {RATIOS_MIN[store]} on two quiet cores")
        missed += ratio < RATIOS_MIN[store]
    return min(1, missed)


if __name__ == "__main__":
    sys.exit(main())
