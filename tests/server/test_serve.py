"""``weft serve`` and ``weft worker`` as processes: quick to answer, orderly to stop, and nothing lost by kill -9."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.server.kit import LONG_WAIT
from weft.cli import main

README = Path(__file__).parents[2] / "README.md"
WEFT = str(Path(sys.executable).with_name("weft"))
APP = """
import asyncio, logging, weft

app = weft.App()

@app.step
async def work(what: str) -> str:
    logging.getLogger("shop").warning("working on %s", what)
    return what

@app.step(queue="gpu")
def draw(what: str) -> str:
    import os
    return f"{what} by {os.getpid()}"

@app.step
async def long() -> str:
    await asyncio.sleep(1)
    return "finished"

@app.workflow
async def order(ctx: weft.Context, order_id: str) -> str:
    await work(order_id)
    quote = await ctx.receive("quote", int)
    return f"{order_id} for {quote}"

@app.step(retries=1)
def refuse() -> None:
    raise OSError("no stock")

@app.step
def reserve() -> None:
    pass

@reserve.undo
def release() -> None:
    raise weft.Critical("stuck")

@app.workflow
async def doomed(ctx: weft.Context) -> None:
    await reserve()
    await refuse()

@app.workflow
async def naps(ctx: weft.Context) -> None:
    await asyncio.sleep(1)

@app.workflow
async def picture(ctx: weft.Context) -> str:
    return await draw("cat")

@app.workflow
async def patient(ctx: weft.Context) -> str:
    return await long()
"""


class Process:
    """A server in a process of its own."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self.running = running
        assert running.stderr is not None
        self.said = running.stderr.readline()
        found = re.search(r":(\d+) on ", self.said)
        assert found is not None, self.said + running.stderr.read()
        self.port = int(found[1])

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self._ask_once(method, path, body)
        while answer[0] == 202 and LONG_WAIT.search(path):  # a busy machine may need several waits
            answer = self._ask_once(method, path, body)
        return answer

    def _ask_once(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            raw = msgspec.json.encode(body) if body is not None else None
            connection.request(method, path, raw, {"content-type": "application/json"} if raw else {})
            answer = connection.getresponse()
            return answer.status, msgspec.json.decode(answer.read())
        finally:
            connection.close()

    def stop(self) -> str:
        self.running.send_signal(signal.SIGTERM)
        _, said = self.running.communicate(timeout=120)
        return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@contextlib.contextmanager
def process(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen([WEFT, *words], cwd=folder, stderr=subprocess.PIPE, text=True)
    with running:
        try:
            yield running
        finally:
            running.kill()


@contextlib.contextmanager
def serve(folder: Path, *words: str) -> Iterator[Process]:
    with process(folder, "serve", "app.py", "--port", "0", *words) as running:
        yield Process(running)


@pytest.mark.proof
def test_a_run_is_started_sent_a_message_and_its_result_is_got(folder: Path) -> None:
    with serve(folder) as server:
        assert "open to every program on this machine" in server.running.stderr.readline()  # type: ignore[union-attr]
        new = {"workflow": "order", "id": "o-1", "input": {"order_id": "o-1"}}
        assert server.ask("POST", "/api/v1/runs", new)[0] == 201
        assert server.ask("POST", "/api/v1/runs/o-1/messages", {"name": "quote", "body": 42})[0] == 200
        status, result = server.ask("GET", "/api/v1/runs/o-1/result?wait=20")
        assert (status, result["output"]) == (200, "o-1 for 42")
        logs = server.stop()
        assert server.running.returncode == 0
    lines = [msgspec.json.decode(line) for line in logs.splitlines() if line.startswith("{")]
    (line,) = [line for line in lines if line["logger"] == "shop"]
    assert (line["message"], line["run"], line["step"]) == ("working on o-1", "o-1", "work")


@pytest.mark.proof
def test_a_server_announces_its_address_to_everybody_who_opens_the_store(folder: Path) -> None:
    with serve(folder) as server:
        _, found = server.ask("GET", "/api/v1/hosts")

    (host,) = found["hosts"]
    assert (host["address"], host["here"]) == (f"http://127.0.0.1:{server.port}", True)


@pytest.mark.proof
def test_what_a_person_may_have_to_look_at_is_logged(folder: Path) -> None:
    with serve(folder) as server:
        for workflow in ("doomed", "naps"):
            server.ask("POST", "/api/v1/runs", {"workflow": workflow, "id": workflow})
        assert server.ask("GET", "/api/v1/runs/doomed/result?wait=20")[1]["status"] == "failed"
        while server.ask("GET", "/api/v1/runs/naps")[1]["status"] != "held":
            time.sleep(0.02)
        logs = server.stop()
    lines = [msgspec.json.decode(line) for line in logs.splitlines() if line.startswith("{")]
    said = {(line["level"], line["run"]): line["message"] for line in lines if line["logger"] == "weft.runs"}
    told = [line["message"] for line in lines if line["logger"] == "weft.runs"]
    assert len(told) == 4
    assert re.match(
        r"weft: doomed: attempt 1 of refuse failed, the next attempt is in \S+: "
        r"refuse: OSError: no stock at app.py:\d+",
        said["warning", "doomed"],
    )
    assert any(text.startswith("weft: doomed: reserve could not be undone: release: Critical: stuck") for text in told)
    assert any(text.startswith("weft: doomed failed: refuse failed after 2 attempts in doomed") for text in told)
    assert said["error", "naps"].startswith("weft: naps is held (code.foreign_await): naps waits at app.py:")


def test_what_was_accepted_survives_kill_9(folder: Path) -> None:
    with serve(folder) as server:
        for n in range(20):
            new = {"workflow": "order", "id": f"o-{n}", "input": {"order_id": f"o-{n}"}}
            assert server.ask("POST", "/api/v1/runs", new)[0] == 201
            assert server.ask("POST", f"/api/v1/runs/o-{n}/messages", {"name": "quote", "body": n})[0] == 200
        os.kill(server.running.pid, signal.SIGKILL)
    with serve(folder) as server:
        for n in range(20):
            _, result = server.ask("GET", f"/api/v1/runs/o-{n}/result?wait=20")
            assert result["output"] == f"o-{n} for {n}"


@pytest.mark.proof
def test_a_step_that_runs_may_finish_before_the_server_stops(folder: Path) -> None:
    with serve(folder) as server:
        server.ask("POST", "/api/v1/runs", {"workflow": "patient", "id": "p"})
        while not server.ask("GET", "/api/v1/runs/p/events")[1]["events"]:
            time.sleep(0.02)
        assert "stopping" in server.stop()
        assert server.running.returncode == 0
    with serve(folder) as server:
        _, result = server.ask("GET", "/api/v1/runs/p/result?wait=20")
        assert result["output"] == "finished"
        kinds = [event["kind"] for event in server.ask("GET", "/api/v1/runs/p/events")[1]["events"]]
        assert "task_lost" not in kinds


@pytest.mark.proof
def test_steps_of_a_queue_are_performed_by_its_worker(folder: Path) -> None:
    with serve(folder, "--queue", "default") as server:
        server.ask("POST", "/api/v1/runs", {"workflow": "picture", "id": "p"})
        assert server.ask("GET", "/api/v1/runs/p/result?wait=0.3")[0] == 202
        with process(folder, "worker", "app.py", "--queue", "gpu") as worker:
            assert "performing steps of gpu" in worker.stderr.readline()  # type: ignore[union-attr]
            _, result = server.ask("GET", "/api/v1/runs/p/result?wait=20")
            assert result["output"] == f"cat by {worker.pid}"
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(120) == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_without_keys_nothing_but_loopback_is_bound(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.chdir(folder)

    assert main(["serve", "app.py", "--host", host]) == 1
    assert "can only listen on this machine" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        assert main(["serve", "app.py", "--port", port]) == 1
    said = capsys.readouterr().err
    assert f"Port {port} of 127.0.0.1 cannot be opened" in said


@pytest.mark.proof
def test_two_apps_are_served_together(folder: Path) -> None:
    (folder / "other.py").write_text(
        "import weft\nother = weft.App()\n\n"
        "@other.workflow\nasync def beside(ctx: weft.Context) -> int:\n    return 7\n"
    )
    with process(folder, "serve", "app.py", "other.py", "--port", "0") as running:
        server = Process(running)
        names = {one["name"] for one in server.ask("GET", "/api/v1/workflows")[1]["workflows"]}
        assert {"order", "beside"} <= names
        server.ask("POST", "/api/v1/runs", {"workflow": "beside", "id": "b"})
        assert server.ask("GET", "/api/v1/runs/b/result?wait=20")[1]["output"] == 7


def test_the_curl_lines_of_the_readme_start_a_run_send_it_a_message_and_get_its_result(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    text = README.read_text()
    example = re.search(r"```python\n(# app\.py\n.*?)```", text, re.DOTALL)
    assert example is not None
    (tmp_path / "app.py").write_text(example[1].replace('"5s"', '"1s"').replace("time.sleep(1)", "time.sleep(0)"))
    lines = re.findall(r"^    \$ (J=.*|curl .*)$", text, re.MULTILINE)
    assert len(lines) == 4
    with serve(tmp_path) as server:
        script = "set -e\n" + "\necho\n".join(line.replace("curl ", "curl -s --fail ") for line in lines)
        script = script.replace("localhost:8420", f"127.0.0.1:{server.port}")
        ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    started, told, result = [msgspec.json.decode(line) for line in ran.stdout.splitlines() if line]
    assert started == {"id": "o-2", "created": True}
    assert told["id"] == "o-2"
    assert result["output"] == "ship o-2"
