"""``--processes N``: children that die come back, none of their runs is lost or repeated, and all stop in order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests import servers
from tests.server.test_serve import Process, process
from weft.cli import main

RUNS = 12
SECONDS_MAX = 60
APP = """
import asyncio, os, pathlib, weft

app = weft.App()
here = pathlib.Path(__file__).parent

@app.step
def reserve(item: str) -> int:
    with open(here / "reserved", "a") as file:
        file.write(item + "\\n")
    return os.getpid()

@app.workflow
async def order(ctx: weft.Context, item: str) -> str:
    await reserve(item)
    paid = await ctx.receive("paid", int)
    return f"{item} for {paid}"

@app.step
async def long(seconds: float) -> str:
    (here / "begun").touch()
    await asyncio.sleep(seconds)
    return "finished"

@app.workflow
async def patient(ctx: weft.Context, seconds: float) -> str:
    return await long(seconds)

@app.step(queue="gpu")
def draw(n: int) -> int:
    import time
    time.sleep(0.2)
    return os.getpid()

@app.workflow
async def picture(ctx: weft.Context, n: int) -> int:
    return await draw(n)
"""
FAILS_IN_CHILDREN = (
    APP
    + """
if "weft.cli.child" in (__import__("sys").orig_argv):
    raise OSError("no licence")
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.proof)])
def url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folder}/weft.db"
    found = servers.database("processes")
    servers.empty(found)
    return found


def children(parent: int) -> set[int]:
    found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False)
    return {int(pid) for pid in found.stdout.split()}


def wait_for(what: Callable[..., bool]) -> None:
    until = time.monotonic() + SECONDS_MAX
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def start(server: Process, workflow: str, id: str, **input: object) -> None:
    assert server.ask("POST", "/api/v1/runs", {"workflow": workflow, "id": id, "input": input})[0] == 201


# --- one dies -----------------------------------------------------------------------------------------------------


def test_a_killed_child_comes_back_and_no_run_is_lost_or_repeated(folder: Path, url: str) -> None:
    with process(folder, "serve", "app.py", "--port", "0", "--processes", "2", "--url", url) as running:
        server = Process(running)
        assert server.said.endswith("in 2 processes\n")
        before = children(running.pid)
        assert len(before) == 2
        for n in range(RUNS):
            start(server, "order", f"o-{n}", item=f"o-{n}")
        # What is recorded is not repeated; a step that is killed in its middle may be.
        for n in range(RUNS):
            wait_for(lambda run=f"/api/v1/runs/o-{n}": server.ask("GET", run)[1]["steps_done"] == 1)
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: len(children(running.pid) - {killed}) == 2)
        for n in range(RUNS):
            assert server.ask("POST", f"/api/v1/runs/o-{n}/messages", {"name": "paid", "body": n})[0] == 200
        for n in range(RUNS):
            assert server.ask("GET", f"/api/v1/runs/o-{n}/result?wait=30")[1]["output"] == f"o-{n} for {n}"
        said = server.stop()
    lines = [msgspec.json.decode(line) for line in said.splitlines() if line.startswith("{")]
    (line,) = [line for line in lines if line["logger"] == "weft.processes"]
    assert line["message"].startswith("weft: process ")
    assert f"(pid {killed}) ended with SIGKILL; starting it again now" in line["message"]
    assert sorted((folder / "reserved").read_text().split()) == sorted(f"o-{n}" for n in range(RUNS))


@pytest.mark.proof
def test_a_child_that_cannot_be_started_again_is_tried_while_the_other_serves(folder: Path) -> None:
    with process(folder, "serve", "app.py", "--port", "0", "--processes", "2") as running:
        server = Process(running)
        (folder / "app.py").write_text(FAILS_IN_CHILDREN)
        os.kill(min(children(running.pid)), signal.SIGKILL)
        said = ""
        while "could not be started; trying again in" not in said:
            said = running.stderr.readline()  # type: ignore[union-attr]
        assert "no licence" in said
        assert server.ask("GET", "/readyz") == (200, {"status": "ready", "detail": "", "redis": None})
        (folder / "app.py").write_text(APP)
        wait_for(lambda: len(children(running.pid)) == 2)
        server.stop()
        assert running.returncode == 0


# --- all stop -----------------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_steps_may_finish_before_all_children_stop(folder: Path) -> None:
    with process(folder, "serve", "app.py", "--port", "0", "--processes", "2") as running:
        server = Process(running)
        start(server, "patient", "p", seconds=1.0)
        wait_for((folder / "begun").exists)
        assert server.stop().count("stopping:") == 1
        assert running.returncode == 0
    with process(folder, "serve", "app.py", "--port", "0") as running:
        server = Process(running)
        assert server.ask("GET", "/api/v1/runs/p/result?wait=20")[1]["output"] == "finished"
        kinds = [event["kind"] for event in server.ask("GET", "/api/v1/runs/p/events")[1]["events"]]
        assert "task_lost" not in kinds


@pytest.mark.proof
def test_a_second_signal_ends_all_at_once(folder: Path) -> None:
    with process(folder, "serve", "app.py", "--port", "0", "--processes", "2") as running:
        server = Process(running)
        start(server, "patient", "p", seconds=600.0)
        wait_for((folder / "begun").exists)
        pids = children(running.pid)
        running.send_signal(signal.SIGINT)
        while "stopping:" not in running.stderr.readline():  # type: ignore[union-attr]
            pass
        running.send_signal(signal.SIGINT)
        assert running.wait(SECONDS_MAX) == 130
        assert not any(is_alive(pid) for pid in pids)


@pytest.mark.proof
def test_children_stop_when_their_parent_is_killed(folder: Path) -> None:
    with process(folder, "serve", "app.py", "--port", "0", "--processes", "2") as running:
        Process(running)
        pids = children(running.pid)
        running.kill()
        wait_for(lambda: not any(is_alive(pid) for pid in pids))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- workers ------------------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_steps_are_performed_by_all_processes_of_a_worker(folder: Path) -> None:
    with process(folder, "serve", "app.py", "--port", "0", "--queue", "default") as running:
        server = Process(running)
        with process(folder, "worker", "app.py", "--queue", "gpu", "--processes", "2") as worker:
            assert "performing steps of gpu" in worker.stderr.readline()  # type: ignore[union-attr]
            pids = children(worker.pid)
            done: set[int] = set()
            for n in range(100):
                start(server, "picture", f"p-{n}", n=n)
                if n % 10 == 9:
                    found = [server.ask("GET", f"/api/v1/runs/p-{m}/result?wait=30")[1] for m in range(n - 9, n + 1)]
                    done |= {result["output"] for result in found}
                if done == pids:
                    break
            assert done == pids
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(SECONDS_MAX) == 0


# --- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["serve", "worker"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--processes 0", "'0' is not a number of at least 1."),
        ("--processes two", "'two' is not a number of at least 1."),
        ("--processes 65", "65 processes are too many; the limit is 64."),
        ("--processes 2 --url memory://", "memory:// exists only in one process, so 2 processes cannot share it."),
    ],
)
def test_what_cannot_work_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, words: str, said: str
) -> None:
    assert main([command, str(folder / "app.py"), *words.split()]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.proof
def test_a_port_that_is_taken_is_said_once(folder: Path) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with process(folder, "serve", "app.py", "--port", port, "--processes", "2") as running:
            _, said = running.communicate(timeout=SECONDS_MAX)
    assert running.returncode == 1
    assert said.count("cannot be opened") == 1


@pytest.mark.proof
def test_an_app_that_fails_in_a_child_is_said_once(folder: Path) -> None:
    (folder / "app.py").write_text(FAILS_IN_CHILDREN)
    with process(folder, "serve", "app.py", "--port", "0", "--processes", "3") as running:
        _, said = running.communicate(timeout=SECONDS_MAX)
    assert running.returncode == 2
    assert said.count("no licence") == 1
    assert said.startswith("weft: app.py cannot be imported: OSError: no licence")
    assert "Traceback" not in said


# --- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_metrics_say_which_process_they_are_of(folder: Path) -> None:
    with process(folder, "serve", "app.py", "--port", "0", "--processes", "2") as running:
        port = Process(running).port
        seen: set[str] = set()
        until = time.monotonic() + SECONDS_MAX
        while seen != {"1", "2"}:
            assert time.monotonic() < until
            seen.add(process_of_metrics(port))


def process_of_metrics(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        text = b""
        while part := connection.recv(65_536):
            text += part
    line = next(line for line in text.decode().splitlines() if line.startswith("weft_runs_in_memory{"))
    return line.partition('process="')[2].partition('"')[0]
