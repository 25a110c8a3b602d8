"""``weft serve`` with code that calls sys.exit() and the like: the server goes on, and never only pretends to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.test_serve import Process, serve

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
from weft.runtime.keeper import Keeper

class Odd(BaseException):
    pass

async def look(self, *, nudged):
    raise Odd("broken on purpose")

Keeper.look = look
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def outcome(server: Process, workflow: str, run: str, **given: str) -> str:
    server.ask("POST", "/api/v1/runs", {"workflow": workflow, "id": run, "input": given})
    _, result = server.ask("GET", f"/api/v1/runs/{run}/result?wait=20")
    return str(result.get("output") or result["failure"]["type"])


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


def test_a_host_whose_own_loop_keeps_ending_says_so_and_ends(folder: Path) -> None:
    (folder / "app.py").write_text(APP + BROKEN)
    with serve(folder) as server:
        _, said = server.running.communicate(timeout=60)
    assert server.running.returncode == 1
    assert "this host stops" in said
    assert "The engine stopped: Odd: broken on purpose." in said
