"""A run tree over HTTP, Postgres, two hosts and an HTTP step, and the spans that it leaves in a collector."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from tests.ext.otel_kit import Collector

SECONDS_MAX = 60
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WEFT = str(Path(sys.executable).with_name("weft"))
APP = """
import asyncio, os, weft

app = weft.App()
rates = app.graph({
    "weft": "graph/1", "name": "rates",
    "input": {"cents": "integer"}, "state": {"rate": "number"}, "output": {"rate": "${state.rate}"},
    "nodes": {"fetch": {
        "http": {"url": os.environ["SHOP_RATES"], "method": "POST", "body": {"cents": "${input.cents}"}},
        "save": {"state.rate": "${output.body.rate}"},
    }},
})

@app.step(retries=weft.Retry(2, delay="20ms"))
async def charge(cents: int) -> str:
    await asyncio.sleep(0.02)
    if weft.task().attempt == 1:
        raise OSError("the bank did not answer")
    return "paid"

@app.step(queue="packing")
def pack(order_id: str) -> int:
    print("packing", order_id)
    return os.getpid()

@app.workflow
async def parcel(ctx: weft.Context, order_id: str) -> int:
    return await pack(order_id)

@app.workflow
async def order(ctx: weft.Context, order_id: str, cents: int) -> str:
    await ctx.call(rates, {"cents": cents})
    await charge(cents)
    await ctx.call(parcel(order_id))
    return await ctx.receive("delivered", str)
"""


class Scene:
    """What a scene left behind."""

    def __init__(self) -> None:
        self.sent_to_rates: list[dict[str, str]] = []
        """The headers of the requests of the HTTP step."""


@contextlib.contextmanager
def played(folder: Path, url: str, collector: Collector) -> Iterator[Scene]:
    """Play the scene. Both processes have ended, and sent everything, when the body begins."""
    scene = Scene()
    (folder / "app.py").write_text(APP)
    with _rates(scene) as rates:
        environment = os.environ | {
            "WEFT_URL": url,
            "WEFT_HTTP_ALLOW": "127.0.0.1",
            "SHOP_RATES": rates,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_METRICS_EXPORTER": "none",
        }
        api = environment | {"OTEL_SERVICE_NAME": "shop-api"}
        worker = environment | {"OTEL_SERVICE_NAME": "shop-packing"}
        with (
            _process(folder, api, "serve", "app.py", "--port", "0", "--queue", "default") as serving,
            _process(folder, worker, "worker", "app.py", "--queue", "packing") as packing,
        ):
            port = _port(serving)
            assert "performing steps of packing" in _line(packing)
            _order(port, "warm")  # so that the second one does not show what is imported
            _order(port, "o-1", traceparent=CALLER)
            for running in (packing, serving):
                running.terminate()
                running.communicate(timeout=SECONDS_MAX)
    yield scene


def _order(port: int, run: str, **headers: str) -> None:
    new = {"workflow": "order", "id": run, "input": {"order_id": run, "cents": 4200}}
    assert _ask(port, "POST", "/api/v1/runs", new, **headers)[0] == 201
    while not any(one["kind"] == "message" for one in _ask(port, "GET", f"/api/v1/runs/{run}/explain")[1]["waiting"]):
        time.sleep(0.01)
    assert _ask(port, "POST", f"/api/v1/runs/{run}/messages", {"name": "delivered", "body": "at home"})[0] < 300
    status, result = _ask(port, "GET", f"/api/v1/runs/{run}/result?wait=30")
    assert (status, result.get("output")) == (200, "at home"), result


@contextlib.contextmanager
def _process(folder: Path, environment: dict[str, str], *words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([WEFT, *words], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def _line(running: subprocess.Popen[str]) -> str:
    assert running.stderr is not None
    return running.stderr.readline()


def _port(serving: subprocess.Popen[str]) -> int:
    said = _line(serving)
    found = re.search(r":(\d+) on ", said)
    assert found is not None, said
    return int(found[1])


def _ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    try:
        raw = msgspec.json.encode(body) if body is not None else None
        connection.request(method, path, raw, headers | ({"content-type": "application/json"} if raw else {}))
        answer = connection.getresponse()
        return answer.status, msgspec.json.decode(answer.read())
    finally:
        connection.close()


@contextlib.contextmanager
def _rates(scene: Scene) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            scene.sent_to_rates.append({name.lower(): value for name, value in self.headers.items()})
            answer = b'{"rate": 1.1}'
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/rates"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
