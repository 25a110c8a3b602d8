"""Weft over HTTP: ``weft serve`` on SQLite with ``synchronous=FULL``, as its users start it.

A start is answered when it is durable. In a burst its run, which performs a step, begins after it: how many runs per
second were accepted and carried out is told beside how many were accepted. Server and generator share the machine's
cores.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.listeners import listening
from bench.load import accepted_of, open_files_many, pour
from bench.measure import ROOT, Sample, cpu_seconds_of, main
from bench.peers.restate_server import free_ports

START_SECONDS_MAX = 30.0
RUN = '{"workflow": "sequence", "input": {"n": 1}}'
WARM_UP = 200
RUNS_HEARD = 400
EVENTS_PER_RUN = 4
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    pid: int
    seconds: float
    """From the command to the first answer."""

    @property
    def runs(self) -> str:
        return f"{self.url}/api/v1/runs"


@contextmanager
def serving(directory: Path, app: str = "bench/workloads/weft_served.py") -> Iterator[Server]:
    (port,) = free_ports(1)
    command = [str(Path(sys.executable).parent / "weft"), "serve", app]
    env = os.environ | {"BENCH_SERVED": f"sqlite:///{directory}/weft.db", "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen([*command, "--port", str(port)], cwd=ROOT, env=env, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_answered(f"{url}/healthz", began + START_SECONDS_MAX)
        yield Server(url, process.pid, time.perf_counter() - began)
    finally:
        process.terminate()
        process.wait()


def wait_until_answered(url: str, deadline: float) -> None:
    """Ask until a server answers."""
    while True:
        try:
            with _opener.open(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            if time.perf_counter() > deadline:
                raise
            time.sleep(0.005)


def ingress(n: int, directory: Path) -> Iterable[Sample]:
    with serving(directory) as server:
        pour(server.runs, RUN, WARM_UP)
        before, began = cpu_seconds_of(server.pid), time.perf_counter()
        load = pour(server.runs, RUN, n)
        while runs_open(server):
            time.sleep(0.02)
        seconds = time.perf_counter() - began
        return accepted_of(load, finished_seconds=seconds, cpu_seconds=cpu_seconds_of(server.pid) - before)


def runs_open(server: Server) -> bool:
    """Whether a run has not ended yet."""
    with _opener.open(f"{server.runs}?status=running&limit=1", timeout=30) as answer:
        return bool(json.load(answer)["runs"])


def first_answer(n: int, directory: Path) -> Iterable[Sample]:
    with serving(directory) as server:
        return [Sample("ingress", "first_answer_ms", server.seconds * 1e3, n)]


def live(n: int, directory: Path) -> Iterable[Sample]:
    """``n`` clients that listen to all events of a workflow while runs of it are started, and one that is stuck."""
    with serving(directory) as server:
        pour(server.runs, RUN, WARM_UP)
        url = f"{server.url}/api/v1/live?workflow=sequence"
        with listening(url, clients=n, events=RUNS_HEARD * EVENTS_PER_RUN) as listeners:
            load = pour(server.runs, RUN, RUNS_HEARD, 16)
            heard = listeners.heard()
            return [
                Sample("live", "rss_mb_most", rss_mb_most(server.pid), n),
                Sample("live", "seconds", heard.seconds, n),
                Sample("live", "events_missing", heard.missing, n),
                Sample("live", "accepted_per_s", RUNS_HEARD / load.seconds, n),
            ]


def rss_mb_most(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6


if __name__ == "__main__":
    open_files_many()
    main({"ingress": ingress, "ingress-first": first_answer, "live": live})
