"""A burst of starts is accepted first and performed after, and a host that dies in its middle loses none of them."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.server.kit import API
from tests.server.test_serve import Process, serve
from weft.authoring.served_app import Served
from weft.core.ids import RunId
from weft.server import admission
from weft.server.admission import STARTS_MAX
from weft.server.api import Api

CLIENTS = 3 * STARTS_MAX


def greeter() -> weft.App:
    app = weft.App("memory://")

    @app.workflow
    async def greet(ctx: weft.Context, name: str) -> str:
        return f"hello {name}"

    return app


async def post(api: Api, order: dict[str, Any]) -> dict[str, Any]:
    """Start a run as the HTTP server would ask for it; what was answered."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": msgspec.json.encode(order)}

    async def send(message: Any) -> None:
        sent.append(message)

    path = f"{API}/runs"
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"localhost")],
    }  # fmt: skip
    await api(scope, receive, send)
    assert sent[0]["status"] == 201, sent
    answered: dict[str, Any] = msgspec.json.decode(sent[1]["body"])
    return answered


def order(n: int, **fields: Any) -> dict[str, Any]:
    return {"workflow": "greet", "id": f"g{n}", "input": {"name": str(n)}, **fields}


def test_of_many_starts_at_once_most_are_only_written_down_and_all_begin_when_it_is_calm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With an hour until their time comes, only the calm can begin them.
    monkeypatch.setattr(admission, "BURST_DELAY_MS", 3_600_000)

    async def scenario() -> None:
        app = greeter()
        async with app:
            api = Api(Served(app.registered), lambda: app.service)
            with contextlib.ExitStack() as busy:  # the burst goes on until all rows are read
                await asyncio.gather(*(post(api, order(n)) for n in range(STARTS_MAX)))
                for _ in range(STARTS_MAX + 1):
                    busy.enter_context(api.services.admission)
                await asyncio.gather(*(post(api, order(n)) for n in range(STARTS_MAX, CLIENTS)))
                rows = [await app.service.row(RunId(f"g{n}")) for n in range(CLIENTS)]
            results = [await app.get(f"g{n}").result(timeout=120) for n in range(CLIENTS)]

            assert sum(row.owner is None and row.wake_at is not None for row in rows) == CLIENTS - STARTS_MAX
            assert results == [f"hello {n}" for n in range(CLIENTS)]

    asyncio.run(scenario())


def test_few_starts_at_once_begin_at_once_and_a_delay_is_kept() -> None:
    async def scenario() -> None:
        app = greeter()
        async with app:
            api = Api(Served(app.registered), lambda: app.service)
            await asyncio.gather(*(post(api, order(n)) for n in range(STARTS_MAX)))
            rows = [await app.service.row(RunId(f"g{n}")) for n in range(STARTS_MAX)]
            assert all(row.wake_at is None for row in rows)

            later = range(STARTS_MAX, STARTS_MAX + CLIENTS)
            await asyncio.gather(*(post(api, order(n, delay=3_600)) for n in later))
            await asyncio.sleep(0.1)
            rows = [await app.service.row(RunId(f"g{n}")) for n in later]
            assert all(row.wake_at is not None and row.wake_at - row.created_at == 3_600_000 for row in rows)
            assert all(row.seq == 0 for row in rows)

    asyncio.run(scenario())


APP = """
import weft

app = weft.App()

@app.step
async def greet(name: str) -> str:
    return f"hello {name}"

@app.workflow
async def hello(ctx: weft.Context, name: str) -> str:
    return await greet(name)
"""


def pour(server: Process, client: int) -> list[str]:
    """Start runs until the server is gone; those that were accepted."""
    accepted: list[str] = []
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
        while True:
            run = f"{client}-{len(accepted)}"
            body = msgspec.json.encode({"workflow": "hello", "id": run, "input": {"name": run}})
            connection.request("POST", f"{API}/runs", body, {"content-type": "application/json"})
            if connection.getresponse().read() and len(accepted) == 30:
                server.running.kill()
            accepted.append(run)
    return accepted


@pytest.mark.proof
def test_a_server_killed_in_a_burst_loses_no_start_that_it_accepted(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with serve(tmp_path) as server, ThreadPoolExecutor(2 * STARTS_MAX) as pool:
        accepted = [run for found in pool.map(pour, [server] * 32, range(32)) for run in found]
        assert server.running.wait(120) == -9

    with serve(tmp_path) as server:
        for run in accepted:
            status, result = server.ask("GET", f"{API}/runs/{run}/result?wait=20")
            assert (status, result["output"]) == (200, f"hello {run}")
