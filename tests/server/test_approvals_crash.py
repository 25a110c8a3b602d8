"""A server that is killed in the middle of a decision neither loses nor doubles it, and a time that comes while it is
down is kept when it is back.
"""

from __future__ import annotations

import http.client
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.server.test_serve import Process, serve

APP = """
import os, signal, weft
from pathlib import Path
from weft.ports.boundary import set_hook

app = weft.App()

def die(name: str) -> None:
    if Path("kill").exists() and Path("kill").read_text() == name:
        Path("kill").unlink()
        os.kill(os.getpid(), signal.SIGKILL)

set_hook(die)

@app.workflow
async def pay(ctx: weft.Context) -> dict:
    answer = await ctx.ask("ok", title="Pay?")
    await ctx.receive("go")
    return {"approved": answer.approved, "by": answer.by}

@app.workflow
async def hurried(ctx: weft.Context) -> bool:
    return (await ctx.ask("ok", title="Now?", timeout="400ms", on_timeout="approve")).approved
"""
API = "/api/v1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def decide(server: Process, by: str, key: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        body = msgspec.json.encode({"approved": True, "by": by})
        headers = {"content-type": "application/json", "idempotency-key": key}
        connection.request("POST", f"{API}/approvals/p%3Aok/decision", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def kinds(server: Process, run: str = "p") -> list[str]:
    _, page = server.ask("GET", f"{API}/runs/{run}/events")
    return [event["kind"] for event in page["events"]]


def until(server: Process, kind: str, run: str = "p") -> None:
    while kind not in kinds(server, run):
        time.sleep(0.02)


@pytest.mark.proof
@pytest.mark.parametrize("place", ["commit.after", "commit.before"])
def test_a_decision_survives_a_kill_in_its_middle_once(folder: Path, place: str) -> None:
    with serve(folder) as server:
        assert server.ask("POST", f"{API}/runs", {"workflow": "pay", "id": "p"})[0] == 201
        until(server, "ask_opened")
        (folder / "kill").write_text(place)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            decide(server, "ann", "click-1")
        assert server.running.wait(120) == -9

    with serve(folder) as server:
        assert decide(server, "ann", "click-1") == 200
        assert decide(server, "bob", "click-2") == 409
        server.ask("POST", f"{API}/runs/p/messages", {"name": "go"})
        _, result = server.ask("GET", f"{API}/runs/p/result?wait=20")
        assert result["output"] == {"approved": True, "by": ["ann"]}
        assert kinds(server).count("ask_answered") == 1


@pytest.mark.proof
def test_a_time_that_comes_while_the_server_is_down_is_kept(folder: Path) -> None:
    with serve(folder) as server:
        server.ask("POST", f"{API}/runs", {"workflow": "hurried", "id": "h"})
        until(server, "ask_opened", "h")
        due = time.monotonic() + 0.4
        server.running.kill()
        server.running.wait(120)
    while time.monotonic() < due:
        time.sleep(0.02)

    with serve(folder) as server:
        result: Any = server.ask("GET", f"{API}/runs/h/result?wait=20")[1]
        assert result["output"] is True
        assert kinds(server, "h").count("ask_answered") == 1
