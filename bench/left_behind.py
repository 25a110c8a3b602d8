"""``python -m bench.left_behind [RUNS]``: what the next host does with the open runs of a host that was killed.

A process starts RUNS runs (100,000) that wait, and is killed with SIGKILL. Fresh processes then say how long they took
until they were ready, and how long their first new run took; others do the same on an empty store, in turn.
"""

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import weft
from bench.kill import announce_recorded, record_then_kill
from bench.measure import ROOT, SCRATCH, Sample, directory_given, main, samples_in

MODULE = "bench.left_behind"
RECORD, MEASURE = "W4-record", "measure"
RUNS = 100_000
STARTED_AT_ONCE = 500
REPEATS = 3
READY_SECONDS_MAX = 3.0
RATIO_MAX = 2.0

app = weft.App(f"sqlite:///{directory_given()}/weft.db")
reached = [0]


@app.step
async def add(number: int) -> int:
    return number + 1


@app.workflow
async def waiting(ctx: weft.Context) -> str:
    reached[0] += 1
    return await ctx.receive("go", str)


@app.workflow
async def work(ctx: weft.Context) -> int:
    return await add(1)


def record(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> None:
        async with app:
            for started in range(0, n, STARTED_AT_ONCE):
                await asyncio.gather(*[app.start(waiting()) for _ in range(min(STARTED_AT_ONCE, n - started))])
            while reached[0] < n:
                await asyncio.sleep(0.1)
            announce_recorded()
            await asyncio.sleep(3600)

    asyncio.run(body())
    return []


def measure(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        began = time.perf_counter()
        async with app:
            ready = time.perf_counter()
            assert await (await app.start(work())).result() == 2
            over = time.perf_counter()
        return [
            Sample("left_behind", "ready_s", ready - began, n),
            Sample("left_behind", "first_run_s", over - ready, n),
        ]

    return asyncio.run(body())


def measured(n: int, directory: Path) -> dict[str, float]:
    """What a fresh process says."""
    command = [sys.executable, "-m", MODULE, MEASURE, str(n), str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return {sample.metric: sample.value for sample in samples_in(done.stdout)}


def compare(runs: int) -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[dict[str, float]]] = {"left": [], "empty": []}
    with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch:
        killed = Path(scratch, "killed")
        killed.mkdir()
        record_then_kill(MODULE, runs, killed)
        for number in range(REPEATS):
            for kind, samples in found.items():
                place = Path(scratch, f"{kind}-{number}")
                if kind == "left":
                    shutil.copytree(killed, place)
                else:
                    place.mkdir()
                samples.append(measured(runs, place))
                shutil.rmtree(place)
    medians = {
        f"{kind}_{metric}": statistics.median(one[metric] for one in samples)
        for kind, samples in found.items()
        for metric in ("ready_s", "first_run_s")
    }
    ratio = medians["left_first_run_s"] / medians["empty_first_run_s"]
    met = ratio <= RATIO_MAX and medians["left_ready_s"] <= READY_SECONDS_MAX
    print(json.dumps({"runs": runs, **medians, "first_run_ratio": ratio, "met": met, "all": found}, indent=1))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    if sys.argv[1:2] in ([RECORD], [MEASURE]):
        main({RECORD: record, MEASURE: measure})
    else:
        parser = argparse.ArgumentParser(prog="python -m bench.left_behind", description=__doc__)
        parser.add_argument("runs", type=int, nargs="?", default=RUNS)
        compare(parser.parse_args().runs)
