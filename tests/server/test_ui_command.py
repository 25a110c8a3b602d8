"""``weft ui`` as a process: it opens the server that hosts the store, else it serves the store and hosts nothing."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

import weft
from tests.server.kit import API

WEFT = str(Path(sys.executable).with_name("weft"))
APP = """
import weft

app = weft.App()

@app.workflow
async def order(ctx: weft.Context, order_id: str) -> str:
    return await ctx.receive("quote", str)
"""
BROWSER = """#!/bin/sh
echo "$1" >> opened.txt
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    return tmp_path


@contextlib.contextmanager
def process(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    with subprocess.Popen(
        [WEFT, *words],
        cwd=folder,
        env={**kept, "BROWSER": f"{folder}/browser %s"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def line(stream: Any) -> str:
    return str(stream.readline()).strip()


def ask(address: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
    try:
        raw = msgspec.json.encode(body) if body is not None else None
        connection.request(method, path, raw, {"content-type": "application/json"} if raw else {})
        answer = connection.getresponse()
        return answer.status, msgspec.json.decode(answer.read())
    finally:
        connection.close()


def start(folder: Path, id: str) -> None:
    """Start a run that no process hosts."""

    async def send() -> None:
        async with weft.Client(f"sqlite:///{folder}/weft.db") as client:
            await client.start("order", {"order_id": id}, id=id)

    asyncio.run(send())


def test_without_a_server_the_store_is_served_at_its_young_run_and_nothing_is_hosted(folder: Path) -> None:
    start(folder, "eu/o-1")
    with process(folder, "ui") as ui:
        address = line(ui.stdout)
        assert address.endswith("/runs/eu%2Fo-1")
        assert (folder / "opened.txt").read_text().strip() == address
        _, me = ask(address, "GET", f"{API}/me")
        assert (me["is_open"], me["host"], me["hosts"]) == (True, "", 0)
        assert [one["kind"] for one in me["warnings"]] == ["no_host"]
        assert ask(address, "GET", f"{API}/hosts")[1]["hosts"] == []
        status, started = ask(address, "POST", f"{API}/runs", {"workflow": "order", "input": {"order_id": "b"}})
        assert (status, started["created"]) == (201, True)
        assert ask(address, "GET", f"{API}/runs/eu%2Fo-1")[1]["status"] == "pending"
        ui.send_signal(signal.SIGINT)
        _, said = ui.communicate(timeout=120)
    assert "Ctrl-C stops it" in said
    assert "Traceback" not in said
    assert ui.returncode == 0


def planning_app(folder: Path) -> weft.App:
    """Return an app that the process of the command knows only through the store."""
    app = weft.App(f"sqlite:///{folder}/weft.db")

    @app.step(gives="total")
    async def price(order_id: str) -> int:
        return len(order_id)

    @app.workflow
    async def order(ctx: weft.Context, order_id: str) -> int:
        return await price(order_id)

    return app


def test_steps_of_living_hosts_are_planned_with_and_workflows_without_a_host_are_remembered(folder: Path) -> None:
    def look() -> tuple[list[str], int, list[str]]:
        with process(folder, "ui") as ui:
            address = line(ui.stdout).partition("/runs")[0]
            steps = ask(address, "GET", f"{API}/steps")[1]["steps"]
            drawn = ask(address, "GET", f"{API}/catalogue/picture")[1]["boxes"]
            assert [step["id"] for step in steps] == [box["title"] for box in drawn]
            status, _ = ask(address, "POST", f"{API}/plan", {"goals": ["price"], "given": ["order_id"]})
            found = ask(address, "GET", f"{API}/workflow-summaries")[1]["workflows"]
            about = ask(address, "GET", f"{API}/workflows/order/about")[1]
            version = f"{API}/workflows/order/versions/{about['newest']}"
            assert about["style"] == "code"
            assert [
                ask(address, "GET", f"{version}{part}")[0] for part in ("", "/picture", "/standing", "/source")
            ] == [200] * 4
            return [step["id"] for step in steps], status, [one["name"] for one in found]

    async def look_while_hosted() -> tuple[list[str], int, list[str]]:
        async with planning_app(folder) as app:
            await (await app.start("order", {"order_id": "o-1"}, id="o-1")).result()
            return await asyncio.to_thread(look)

    assert asyncio.run(look_while_hosted()) == (["price"], 200, ["order"])
    assert look() == ([], 404, ["order"])


@pytest.mark.proof
def test_the_server_that_hosts_the_store_is_opened(folder: Path) -> None:
    with process(folder, "serve", "app.py", "--port", "0") as serve:
        said = [line(serve.stderr) for _ in range(3)]
        address = said[0].removeprefix("weft: serving ").partition(" ")[0]
        assert said[2] in (f"the web UI is at {address}/", "the web UI is not built: make ui")
        ask(address, "POST", f"{API}/runs", {"workflow": "order", "id": "o-1", "input": {"order_id": "a"}})
        done = subprocess.run(
            [WEFT, "ui", "o-", "--print"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )
    assert done.stdout.strip() == f"{address}/runs/o-1"
    assert (done.returncode, f"{address} serves" in done.stderr) == (0, True)
    assert not (folder / "opened.txt").exists()


@pytest.mark.proof
def test_a_run_or_a_store_that_is_not_there_is_named(folder: Path) -> None:
    nothing = subprocess.run([WEFT, "ui"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (nothing.returncode, "There is no store" in nothing.stderr) == (1, True)

    start(folder, "o-1")
    unknown = subprocess.run([WEFT, "ui", "x"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (unknown.returncode, "No run 'x'" in unknown.stderr) == (1, True)
