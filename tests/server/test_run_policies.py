"""Rules for one run (``run_policies``), given with its start over HTTP and by clients of a server and of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, serving

NODES = {
    "first": {"step": "mark", "with": {"name": "first"}, "next": "second", "catch": "refused"},
    "second": {"step": "mark", "with": {"name": "second"}},
    "refused": {"step": "mark", "with": {"name": "refused"}},
}
ONLY_REFUSED = {"allowed_transitions": {"first": ["refused"]}}


@pytest.fixture
def marked() -> list[str]:
    """The nodes that were performed."""
    return []


@pytest.fixture
def app(tmp_path: Path, marked: list[str]) -> weft.App:
    app = weft.App(f"sqlite:///{tmp_path}/weft.db")

    @app.step
    async def mark(name: str) -> None:
        marked.append(name)

    @app.workflow
    async def wait(ctx: weft.Context) -> None:
        await ctx.sleep("1h")

    app.graph({"name": "flow", "nodes": NODES})
    return app


@pytest.fixture
def server(app: weft.App) -> Iterator[Server]:
    with serving(app) as found:
        yield found


def started(server: Server, workflow: str, rules: Any, run: str = "r-1") -> Any:
    return server.post(f"{API}/runs", {"workflow": workflow, "id": run, "run_policies": rules})


def test_a_start_over_http_limits_the_transitions_of_its_run(server: Server, marked: list[str]) -> None:
    assert started(server, "flow", ONLY_REFUSED).status == 201
    server.result("r-1")

    assert marked == ["first", "refused"]
    assert started(server, "flow", ONLY_REFUSED).status == 200, "a repeated start finds the run"


def test_a_start_over_http_limits_the_hops_of_its_run(server: Server, marked: list[str]) -> None:
    assert started(server, "flow", {"max_hops": 1}).status == 201

    ended = server.result("r-1")

    assert ended["status"] == "failed"
    assert "limit of 1 hops" in ended["failure"]["message"]


@pytest.mark.parametrize(
    ("workflow", "rules"),
    [
        ("flow", {"max_hops": 0}),
        ("flow", {"max_hopes": 3}),
        ("flow", {"allowed_transitions": {"frist": []}}),
        ("flow", {"deadline_at": "tomorrow"}),
        ("wait", {"max_hops": 3}),
    ],
)
def test_rules_that_are_not_valid_start_nothing(server: Server, workflow: str, rules: Any) -> None:
    refused = started(server, workflow, rules)

    assert (refused.status, refused.code) == (422, "value.bad_policy")
    assert server.get(f"{API}/runs/r-1").status == 404


def test_a_client_of_a_server_gives_the_rules_with_a_start(server: Server, marked: list[str]) -> None:
    async def play() -> None:
        due = (datetime.now(UTC) + timedelta(milliseconds=50)).isoformat()
        async with weft.Client(server.url) as client:
            await (await client.start("flow", run_policies=ONLY_REFUSED)).result(timeout=200)
            with pytest.raises(weft.BadValue) as refused:
                await client.start("flow", run_policies={"allowed_transitions": {"frist": []}})
            assert refused.value.code == "value.bad_policy"
            late = await client.start("wait", run_policies={"deadline_at": due})
            with pytest.raises(weft.RunFailed):
                await late.result(timeout=200)

    asyncio.run(play())
    assert marked == ["first", "refused"]


def test_a_client_of_a_store_gives_the_rules_to_the_host_that_claims_the_run(app: weft.App, marked: list[str]) -> None:
    async def play() -> None:
        async with weft.Client(app.url) as client:
            flow = await client.start("flow", run_policies=ONLY_REFUSED)
            code = await client.start("wait", run_policies={"max_hops": 3})
            async with app:
                await flow.result(timeout=200)
                with pytest.raises(weft.RunFailed, match="no graph"):
                    await code.result(timeout=200)

    asyncio.run(play())
    assert marked == ["first", "refused"]
