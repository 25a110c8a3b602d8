"""Patches of code runs, over HTTP and by a client of the server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import weft
from tests.server.kit import API, Server, covers, serving


@pytest.fixture
def server() -> Iterator[Server]:
    app = weft.App("memory://")

    @app.step
    async def charge(name: str) -> str:
        return f"charged {name}"

    @app.workflow(name="order", version="2")
    async def second(ctx: weft.Context, name: str) -> str:
        await charge(name)
        await ctx.receive("go")
        return "second"

    @app.workflow(name="order", version="3")
    async def third(ctx: weft.Context, name: str) -> str:
        await charge(f"other than {name}")
        return "third"

    @app.workflow(name="order", version="1")
    async def first(ctx: weft.Context, name: str) -> str:
        await charge(name)
        await ctx.receive("go")
        return "first"

    with serving(app) as running:
        yield running


@covers("patchRun", "undoPatch", "getRunVersions")
def test_a_code_run_is_brought_to_another_version(server: Server) -> None:
    run = server.start("order", id="o-1", name="ann")
    server.until(run, "message_awaited")
    path = f"{API}/runs/{run}"

    refused = server.post(f"{path}/patch", {"patch": {"to": "3"}})
    plan = server.post(f"{path}/patch", {"patch": {"to": "2"}, "dry_run": True}).json

    assert (refused.status, refused.code) == (409, "patch.diverges")
    (finding,) = refused.json["plan"]["refusals"]
    assert (finding["place"], finding["asked"]) == ("charge", '(name="other than ann")')
    assert "weft fork o-1 --before charge --to 3" in finding["hint"]
    assert server.post(f"{path}/patch", {"patch": {"to": "2"}, "expect": plan["digest"]}).json["applied"]
    assert server.post(f"{path}/patch/undo", {}).json["version"] == "1"
    assert server.post(f"{path}/patch/undo", {"redo": True}).json["version"] == "2"
    versions = server.get(f"{path}/versions").json["versions"]
    assert [(one["rev"], one["version"]) for one in versions] == [(0, "1"), (1, "2"), (2, "1"), (3, "2")]
    server.post(f"{path}/messages", {"name": "go"})
    assert server.result(run)["output"] == "second"
