"""A Flask application under a real threaded server."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flask
import pytest
from werkzeug.serving import make_server

import weft
from tests.blocking.shop import make_shop


def make_site(app: weft.App) -> flask.Flask:
    site = flask.Flask("shop")

    @site.post("/orders/<id>")
    def create(id: str) -> tuple[dict[str, str], int]:
        handle = app.sync.start("order", {"item": id}, id=id)
        return {"id": handle.id}, 202

    @site.get("/orders/<id>")
    def show(id: str) -> dict[str, str]:
        return {"status": app.sync.get(id).status(), "result": app.sync.get(id).result(timeout="1m")}

    @site.errorhandler(weft.NotFound)
    def missing(error: weft.NotFound) -> tuple[dict[str, str], int]:
        return {"error": error.code}, 404

    return site


@pytest.fixture
def address() -> Iterator[str]:
    app = make_shop("memory://")
    server = make_server("127.0.0.1", 0, make_site(app), threaded=True)
    serving = threading.Thread(target=server.serve_forever, args=(0.01,))
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()
    app.sync.close()


def call(url: str, method: str = "GET") -> tuple[int, Any]:
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_requests_start_runs_and_wait_for_them(address: str) -> None:
    assert call(f"{address}/orders/o-1", "POST") == (202, {"id": "o-1"})
    assert call(f"{address}/orders/o-1", "POST") == (202, {"id": "o-1"})
    assert call(f"{address}/orders/o-1")[1]["result"] == "box of o-1"
    assert call(f"{address}/orders/o-2") == (404, {"error": "run.not_found"})


def test_requests_of_many_threads_at_once(address: str) -> None:
    def one(number: int) -> str:
        call(f"{address}/orders/o-{number}", "POST")
        return str(call(f"{address}/orders/o-{number}")[1]["result"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(32))) == [f"box of o-{number}" for number in range(32)]
