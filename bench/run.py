"""``python -m bench.run``: measure Weft, the raw store, the floor and the peers that are installed, side by side.

Every measured process is a fresh one. Repetition 1 of all systems comes before repetition 2 of any, so that whatever
else the machine does falls on all of them alike. Only a whole run replaces ``bench/results.json``; a part of one
(``--only``, ``--systems``, ``--quick``) writes ``build/bench/results.json``.
"""

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from bench import postgres_plan
from bench.measure import ROOT, SCRATCH, Sample, samples_in
from bench.postgres import URL, database, server
from bench.report import Results, print_tables, write_json
from bench.systems import QUICK_N_MAX, SYSTEMS, WORKLOADS, System, Task, tasks_of

TASK_SECONDS_MAX = 900.0
ALL = (*SYSTEMS, *postgres_plan.SYSTEMS)
EVERYTHING = (*WORKLOADS, *postgres_plan.WORKLOADS)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description="Weft beside its peers and its limits.")
    parser.add_argument("--only", default="", metavar="W1,W2", help="these workloads only")
    parser.add_argument("--systems", default="", metavar="weft,raw", help="these systems only")
    parser.add_argument("--reps", type=int, default=3, help="repetitions (the median is reported; default 3)")
    parser.add_argument("--quick", action="store_true", help="one repetition, nothing above 5,000")
    parser.add_argument("--store", default="", metavar="postgres", help="on this store only")
    return parser.parse_args(given)


def chosen(names: str, known: tuple[str, ...]) -> list[str]:
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return wanted or list(known)


def systems_for(names: str, store: str) -> list[System]:
    """The systems asked for, or all that are installed."""
    wanted = chosen(names, tuple(system.name for system in ALL))
    stores = chosen(store, tuple(system.store for system in ALL))
    found = [system for system in ALL if system.name in wanted and system.store in stores]
    for system in found:
        if not system.installed:
            print(f"{system.name} is not installed (make bench-peers): left out", file=sys.stderr)
    return [system for system in found if system.installed]


def measure(system: System, task: Task, server_url: str) -> list[Sample]:
    """One fresh process with a directory of its own, on the disk of the project and not in a memory file system.

    On Postgres it has a database of its own.
    """
    directory = Path(tempfile.mkdtemp(prefix=f"{system.name}-{task[0]}-", dir=SCRATCH))
    command = system.command(task, directory)
    place = database(server_url, directory.name) if system.store == postgres_plan.STORE else nullcontext("")
    with place as url:
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {URL: url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            printed, complaints = child.communicate(timeout=TASK_SECONDS_MAX)
        finally:
            _stop(child)
            shutil.rmtree(directory, ignore_errors=True)
    samples = samples_in(printed)
    if child.returncode != 0 or not samples:
        raise RuntimeError(complaints.strip()[-600:] or f"ended with {child.returncode}")
    return samples


def _stop(child: subprocess.Popen[str]) -> None:
    """Ask first: a driver that is terminated still stops the servers it started."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


class Neighbours:
    """How many cores everyone else on the machine used, to say how far a run can be trusted."""

    def __init__(self) -> None:
        self._busy, self._ours, self._start = _busy_seconds(), _our_seconds(), time.monotonic()

    def cores(self) -> float:
        foreign = (_busy_seconds() - self._busy) - (_our_seconds() - self._ours)
        return max(0.0, foreign / (time.monotonic() - self._start))


def _busy_seconds() -> float:
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _idle, _wait, irq, softirq, steal = (int(field) for field in fields[:8])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _our_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def measure_all(systems: list[System], workloads: list[str], reps: int, n_max: int | None) -> Results:
    results = Results()
    plan = [
        (system, task)
        for workload in workloads
        for system in systems
        for task in tasks_of(system, workload, n_max=n_max)
    ]
    on_postgres = any(system.store == postgres_plan.STORE for system in systems)
    with server() if on_postgres else nullcontext("") as server_url:
        for rep in range(1, reps + 1):
            for system, task in plan:
                about = f"{task[0]:<10} n={task[1]:<7} {system.name} on {system.store}"
                print(f"rep {rep}/{reps}  {about}", file=sys.stderr, flush=True)
                neighbours = Neighbours()
                try:
                    results.add(system, measure(system, task, server_url))
                except (RuntimeError, subprocess.TimeoutExpired) as failure:
                    results.failures.append(f"{system.name} {task[0]} n={task[1]} rep {rep}: {failure}")
                if system.store != postgres_plan.STORE:
                    # The server's own work would be taken for that of others.
                    results.other_cpu.append(neighbours.cores())
    return results


def main() -> None:
    given = arguments()
    systems, workloads = systems_for(given.systems, given.store), chosen(given.only, EVERYTHING)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    reps, n_max = (1, QUICK_N_MAX) if given.quick else (given.reps, None)
    results = measure_all(systems, workloads, reps, n_max)
    whole = not (given.quick or given.only or given.systems or given.store)
    path = (ROOT / "bench" if whole else SCRATCH) / "results.json"
    write_json(results, path)
    print_tables(results)
    print(f"\nwritten to {path.relative_to(ROOT)}")
    if results.failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
