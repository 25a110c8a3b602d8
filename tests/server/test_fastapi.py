"""The program of the examples: Weft inside FastAPI, in two lines, behind a real server."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import importlib
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvicorn

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    for name in ("p12_fastapi.py", "p03_approval.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    program = importlib.import_module("p12_fastapi")
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(program.api, log_config=None, ws="none"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(120)
        bound.close()
        for name in ("p12_fastapi", "p03_approval"):
            sys.modules.pop(name, None)


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    with contextlib.closing(connection):
        raw = msgspec.json.encode(body) if body is not None else None
        connection.request(method, path, raw, {"content-type": "application/json"} if raw else {})
        answer = connection.getresponse()
        return answer.status, msgspec.json.decode(answer.read())


def test_the_program_starts_runs_and_the_api_beside_it_steers_them(port: int) -> None:
    assert ask(port, "POST", "/orders", {"order_id": "o-1"}) == (202, {"run": "order-o-1", "status": "running"})
    assert ask(port, "POST", "/orders/o-1/quote?cents=4200")[0] == 200

    status, found = ask(port, "GET", "/weft/api/v1/runs/order-o-1")
    assert (status, found["workflow"]) == (200, "order")
    assert ask(port, "GET", "/weft/readyz")[0] == 200
    assert ask(port, "GET", "/weft/openapi.json")[1]["openapi"] == "3.1.0"
    approvals: list[Any] = []
    cursor = ""
    while not approvals:
        page = ask(port, "GET", f"/weft/api/v1/approvals?limit=10{cursor}")[1]
        approvals = page["approvals"]
        cursor = f"&cursor={page['cursor']}" if page["cursor"] else ""
        time.sleep(0.01)
    path = f"/weft/api/v1/approvals/{approvals[0]['id'].replace(':', '%3A')}/decision"
    assert ask(port, "POST", path, {"approved": True, "by": "role:ops", "form": {"carrier": "dhl"}})[0] == 200
    assert ask(port, "GET", "/weft/api/v1/runs/order-o-1/result?wait=20")[1]["output"] == "o-1:dhl"

    started = ask(port, "POST", "/weft/api/v1/runs", {"workflow": "order", "id": "x", "input": {"order_id": "x"}})
    assert started == (201, {"id": "x", "created": True})


def test_a_refusal_is_an_answer_of_the_program(port: int) -> None:
    ask(port, "POST", "/orders", {"order_id": "o-2"})
    assert ask(port, "POST", "/weft/api/v1/runs/order-o-2/cancel", {})[0] == 200
    assert ask(port, "GET", "/weft/api/v1/runs/order-o-2/result?wait=20")[1]["status"] == "cancelled"

    assert ask(port, "POST", "/orders/o-2/quote?cents=1")[0] == 409
