"""What a measured process needs: samples, meters of time, CPU and memory, and a main that prints samples.

Only the standard library is imported here, because the peers' environments import this module too. CPU of other
processes and resident memory are read from ``/proc``, so figures other than times need Linux.
"""

import asyncio
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "build" / "bench"
RESULT = {"ok": True, "n": 1, "msg": "hello"}
IDLE_SECONDS = 10.0
FIXED_RUNS = 20
RUNS_MIN = 5
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure of one repetition. ``n`` is the size of the workload it was taken from."""

    workload: str
    metric: str
    value: float
    n: int
    style: str = "code"


Workload = Callable[[int, Path], Iterable[Sample]]


class Meter:
    """Wall time and CPU time since it was made, of this process and of ``pids``."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self._cpu_start = self._cpu_now()
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    @property
    def cpu_seconds(self) -> float:
        return self._cpu_now() - self._cpu_start

    def _cpu_now(self) -> float:
        return time.process_time() + sum(cpu_seconds_of(pid) for pid in self._pids)


def cpu_seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def rss_mb(*pids: int) -> float:
    """Resident memory of this process, or of ``pids`` together."""
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids or (os.getpid(),))
    return sum(pages) * _PAGE_BYTES / 1e6


def steps_of(workload: str, n: int, meter: Meter) -> list[Sample]:
    """The figures of a run of ``n`` steps that has just ended; read the meter before anything else runs."""
    seconds, cpu_seconds = meter.seconds, meter.cpu_seconds
    return [
        Sample(workload, "steps_per_s", n / seconds, n),
        Sample(workload, "us_per_step", seconds / n * 1e6, n),
        Sample(workload, "cpu_us_per_step", cpu_seconds / n * 1e6, n),
    ]


def runs_of(workload: str, n: int, steps_per_run: int, meter: Meter) -> list[Sample]:
    """The figures of ``n`` runs that have all just ended."""
    seconds, cpu_seconds = meter.seconds, meter.cpu_seconds
    return [
        Sample(workload, "runs_per_s", n / seconds, n),
        Sample(workload, "seconds", seconds, n),
        Sample(workload, "cpu_us_per_step", cpu_seconds / (n * steps_per_run) * 1e6, n),
    ]


def latencies_of(workload: str, seconds: Sequence[float]) -> list[Sample]:
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return [
        Sample(workload, "p50_ms", statistics.median(ordered) * 1e3, len(ordered)),
        Sample(workload, "p99_ms", p99 * 1e3, len(ordered)),
    ]


def repeats(n: int) -> int:
    """How often W6 runs ``n`` steps in one process: a short run is repeated, for one alone is mostly noise."""
    return max(1, 2000 // n)


def steady_of(n: int, seconds_each_run: Sequence[float]) -> list[Sample]:
    """W6: time per step inside the workflow, without what starting and ending the run costs."""
    return [Sample("W6", "us_per_step", statistics.median(seconds_each_run) / n * 1e6, n)]


async def seconds_each(n: int, once: Callable[[], Coroutine[Any, Any, object]]) -> list[float]:
    """Do ``once`` n times, one at a time, and say how long each took."""
    taken: list[float] = []
    for _ in range(n):
        started = time.perf_counter()
        await once()
        taken.append(time.perf_counter() - started)
    return taken


async def parts_of(workload: str, part: str, n: int, fan_out: Callable[[int], Awaitable[float]]) -> list[Sample]:
    """What each of ``n`` parts of one run costs: what they take beyond a run of one.

    Of the processor's time the best of several runs: sizes are compared with each other, and a run that takes long
    meets more of its neighbours.
    """

    async def cpu_of(size: int) -> float:
        meter = Meter()
        await fan_out(size)
        return meter.cpu_seconds

    fixed = min([await cpu_of(1) for _ in range(FIXED_RUNS)])
    least = min([await cpu_of(n) for _ in range(max(RUNS_MIN, repeats(n)))])
    seconds = statistics.median([await fan_out(n) for _ in range(RUNS_MIN)])
    return [
        Sample(workload, "seconds", seconds, n),
        Sample(workload, f"us_per_{part}", seconds / n * 1e6, n),
        Sample(workload, f"cpu_us_per_{part}", (least - fixed) / (n - 1) * 1e6, n),
    ]


async def suspended_of(n: int, rss_mb_before: float, *pids: int) -> list[Sample]:
    """Memory of ``n`` suspended runs, and the CPU they take while nothing happens."""
    await quiet(*pids)
    resident = rss_mb(*pids)
    meter = Meter(*pids)
    await asyncio.sleep(IDLE_SECONDS)
    idle = meter.cpu_seconds / meter.seconds * 100
    return [
        Sample("W7", "rss_mb", resident, n),
        Sample("W7", "kb_per_run", (resident - rss_mb_before) * 1e3 / n, n),
        Sample("W7", "idle_cpu_percent", idle, n),
    ]


async def quiet(*pids: int, share: float = 0.03, seconds_max: float = 20.0) -> None:
    """Wait until less than ``share`` of a core is used; a system that never rests is measured as it is."""
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        meter = Meter(*pids)
        await asyncio.sleep(1.0)
        if meter.cpu_seconds / meter.seconds < share:
            return


def directory_given() -> Path:
    """Where this process keeps its files; for systems that must be told while their module is imported."""
    return Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else SCRATCH


def store_url(otherwise: str = "") -> str:
    """The database of this process, if it was given one."""
    return os.environ.get("BENCH_URL") or otherwise


def main(workloads: dict[str, Workload]) -> None:
    """``python -m MODULE WORKLOAD N DIRECTORY``: run one workload, print its samples as lines of JSON."""
    # A terminated driver must still stop the servers it started, which an exception does and a signal does not.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    name, n, directory = sys.argv[1], int(sys.argv[2]), directory_given()
    directory.mkdir(parents=True, exist_ok=True)
    for sample in workloads[name](n, directory):
        print(json.dumps(asdict(sample)), flush=True)


def samples_in(text: str) -> list[Sample]:
    """The samples among whatever else a system printed."""
    return [Sample(**json.loads(line)) for line in text.splitlines() if line.startswith('{"workload"')]
