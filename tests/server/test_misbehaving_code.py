"""``weft serve`` with code that calls sys.exit() and the like: the server goes on, and never only pretends to."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import weft
from tests.server.kit import serving
from tests.server.test_serve import Process, serve
from weft.runtime.duties.scheduler import Scheduler
from weft.stores.memory.log import MemoryLog

APP = """
import sys, weft

app = weft.App()

@app.step(retries=0)
async def leave(how: str) -> None:
    if how == "exit":
        sys.exit(3)
    raise {"interrupt": KeyboardInterrupt, "stop": StopIteration}[how]

@app.step(retries=0)
def leave_thread(how: str) -> None:
    if how == "exit":
        sys.exit(3)
    raise {"interrupt": KeyboardInterrupt, "stop": StopIteration}[how]

@app.workflow
async def in_step(ctx: weft.Context, how: str) -> None:
    await leave(how)

@app.workflow
async def in_thread(ctx: weft.Context, how: str) -> None:
    await leave_thread(how)

@app.workflow
async def in_code(ctx: weft.Context, how: str) -> None:
    if how == "exit":
        sys.exit(3)
    raise {"interrupt": KeyboardInterrupt, "stop": StopIteration}[how]

@app.workflow
async def well(ctx: weft.Context) -> str:
    await ctx.sleep("10ms")
    return "well"
"""
BROKEN = """
from weft.runtime.duties.scheduler import Scheduler
from weft.stores.memory.log import MemoryLog

class Odd(BaseException):
    pass

async def run_round(self, woken):
    raise Odd("broken on purpose")

Scheduler.run_round = run_round
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def outcome(server: Process, workflow: str, run: str, **given: str) -> str:
    server.ask("POST", "/api/v1/runs", {"workflow": workflow, "id": run, "input": given})
    _, result = server.ask("GET", f"/api/v1/runs/{run}/result?wait=20")
    return str(result.get("output") or result["failure"]["type"])


@pytest.mark.proof
def test_a_server_outlives_code_that_ends_the_interpreter(folder: Path) -> None:
    expected = {"exit": "SystemExit", "interrupt": "KeyboardInterrupt", "stop": "StopIteration"}
    with serve(folder) as server:
        for how, raised in expected.items():
            for workflow in ("in_step", "in_thread", "in_code"):
                found = outcome(server, workflow, f"{workflow}-{how}", how=how)
                # A coroutine cannot raise StopIteration: Python makes a RuntimeError of it.
                also = {"RuntimeError", "StepFailed"} if workflow != "in_code" or how == "stop" else set()
                assert found in {raised, *also}
        assert outcome(server, "well", "after") == "well"
        assert server.ask("GET", "/healthz")[0] == 200
        server.stop()
        assert server.running.returncode == 0
    with serve(folder) as server:
        assert outcome(server, "well", "restarted") == "well"


@pytest.mark.proof
def test_a_host_whose_own_loop_keeps_ending_says_so_and_ends(folder: Path) -> None:
    (folder / "app.py").write_text(APP + BROKEN)
    with serve(folder) as server:
        _, said = server.running.communicate(timeout=200)
    assert server.running.returncode == 1
    assert "this host stops" in said
    assert "The engine stopped: Odd: broken on purpose." in said


@pytest.fixture
def terminated() -> Iterator[threading.Event]:
    """Set when this process is told to end; it does not."""
    heard = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: heard.set())
    yield heard
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(("owner", "name"), [(Scheduler, "run_round"), (MemoryLog, "commit")])
def test_a_server_whose_engine_died_is_not_healthy_and_its_process_is_told_to_end(
    owner: type, name: str, terminated: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Odd(BaseException):
        pass

    async def broken(*_: Any, **__: Any) -> NoReturn:
        raise Odd("broken on purpose")

    app = weft.App("memory://")
    gate = asyncio.Event()

    @app.step
    async def wait() -> None:
        await gate.wait()

    @app.workflow
    async def busy(ctx: weft.Context) -> None:
        await wait()

    with pytest.raises(weft.WeftError, match="The engine stopped: Odd: broken on purpose"), serving(app) as server:
        server.start("busy", "b")
        assert server.get("/healthz").status == 200
        monkeypatch.setattr(owner, name, broken)
        server.loop.call_soon_threadsafe(gate.set)
        assert terminated.wait(200)
        answer = server.get("/healthz")
        assert (answer.status, answer.json["status"]) == (503, "failed")
        assert "broken on purpose" in answer.raw.decode()
        assert server.get("/readyz").status == 503
        answer = server.post("/api/v1/runs", {"workflow": "busy", "id": "late"})
        assert answer.status == 503
