"""W4's murder: a child records a run, is killed with SIGKILL, and fresh processes resume what it left.

A module takes part with two workloads: ``W4-record`` calls ``announce_recorded`` inside a step that never returns, and
``W4-resume`` prints its samples. The directory is copied for each resumption, so that each finds the very same bytes.
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.measure import ROOT, Sample, samples_in

_RECORDED = "RECORDED"
RESUMPTIONS = 3
FIXED = 1


def announce_recorded() -> None:
    """Tell the parent, from the step behind the history, that it may kill now."""
    os.write(1, f"\n{_RECORDED}\n".encode())


def record_then_kill(module: str, n: int, directory: Path) -> None:
    command = [sys.executable, "-m", module, "W4-record", str(n), str(directory)]
    complaints = directory / "complaints.log"
    with (
        complaints.open("w") as log,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as child,
    ):
        assert child.stdout is not None
        try:
            recorded = any(line.strip() == _RECORDED for line in child.stdout)
        finally:
            child.send_signal(signal.SIGKILL)
    if not recorded:
        raise RuntimeError(f"{module} ended before it had recorded {n} steps: {complaints.read_text()[-2000:]}")


def resume(module: str, n: int, directory: Path) -> list[Sample]:
    command = [sys.executable, "-m", module, "W4-resume", str(n), str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    samples = samples_in(done.stdout)
    if done.returncode != 0 or not samples:
        raise RuntimeError(f"{module} did not resume: {done.stderr[-2000:]}")
    return samples


def seconds_to_resume(module: str, n: int, directory: Path) -> float:
    """Median over fresh processes, each resuming a copy of the same killed run of ``n`` steps."""
    killed = directory / f"killed-{n}"
    killed.mkdir(parents=True)
    record_then_kill(module, n, killed)
    taken: list[float] = []
    for index in range(RESUMPTIONS):
        copy = directory / f"resumed-{n}-{index}"
        shutil.copytree(killed, copy)
        taken += [sample.value for sample in resume(module, n, copy) if sample.metric == "seconds"]
    return statistics.median(taken)


def replay_less_fixed(module: str) -> Callable[[int, Path], list[Sample]]:
    """W4 by difference: what a run of ``n`` steps takes to resume beyond what a run of one step takes."""

    def workload(n: int, directory: Path) -> list[Sample]:
        fixed = seconds_to_resume(module, FIXED, directory)
        total = seconds_to_resume(module, n, directory)
        return [
            Sample("W4", "us_per_step", (total - fixed) / (n - FIXED) * 1e6, n),
            Sample("W4", "seconds", total, n),
            Sample("W4", "seconds", fixed, FIXED),
        ]

    return workload


def replay_inside(module: str) -> Callable[[int, Path], list[Sample]]:
    """W4 as the resumed process itself measured it, for systems with a fixed delay that would drown a difference."""

    def workload(n: int, directory: Path) -> list[Sample]:
        killed = directory / f"killed-{n}"
        killed.mkdir(parents=True)
        record_then_kill(module, n, killed)
        return resume(module, n, killed)

    return workload
