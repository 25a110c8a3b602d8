"""Lists of runs as a screen asks for them: filters, what rows say, and counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, covers, quoted, serving
from tests.server.shop import shop


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Runs of several workflows that ended, failed and wait, each for something else."""
    app = shop()

    @app.workflow
    async def nap(ctx: weft.Context) -> None:
        await ctx.sleep("1h")

    @app.workflow
    async def parent(ctx: weft.Context) -> None:
        await ctx.call(nap(), id=f"{ctx.run_id}.nap")

    with serving(app) as running:
        for name in ("ann", "bob"):
            running.result(running.start("hello", f"hello-{name}", name=name))
        running.result(running.start("fragile", "fragile-1", n=1))
        running.until(running.start("order", "o-1", order_id="o-1"), "message_awaited")
        running.until(running.start("ship", "s-1", order_id="o-1"), "ask_opened")
        running.until(running.start("picture", "p-1", file="a.png"), "node_routed")
        running.until(running.start("parent", "family-1"), "child_started")
        while not running.get(f"{API}/runs?q=family-1.nap&waits=time").json["runs"]:
            time.sleep(0.01)
        running.until("family-1.nap", "timer_set")
        yield running


def listed(server: Server, query: str) -> list[str]:
    answer = server.get(f"{API}/runs?{query}")
    assert answer.status == 200, answer.raw
    return sorted(run["id"] for run in answer.json["runs"])


@covers("listRuns")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("status=completed&status=failed", ["fragile-1", "hello-ann", "hello-bob"]),
        ("style=graph", ["p-1"]),
        ("workflow=hello&version=1", ["hello-ann", "hello-bob"]),
        ("workflow=hello&version=2", []),
        ("where=name%3Dann", ["hello-ann"]),
        ("where=name%3Dann&status=failed", []),
        ("q=hel", ["hello-ann", "hello-bob"]),
        ("q=o", ["o-1"]),
        ("q=fra", ["fragile-1"]),
        ("q=s-", ["s-1"]),
        ("q=s", ["s-1"]),
        ("q=zzz", []),
        ("q=hello&prefix=hello-b", ["hello-bob"]),
        ("parent=family-1", ["family-1.nap"]),
        ("fault=true", []),
        ("waits=person", ["s-1"]),
        ("waits=message", ["o-1"]),
        ("waits=time", ["family-1.nap"]),
        ("waits=step", ["p-1"]),
        ("waits=child", ["family-1"]),
        ("waits=person&waits=message", ["o-1", "s-1"]),
        ("waits=message&status=completed", []),
        ("unchanged=1h", []),
        ("until=2020-01-01T00:00:00Z", []),
        ("since=2020-01-01T00:00:00Z&status=failed", ["fragile-1"]),
    ],
)
def test_a_filter_finds_what_it_says(server: Server, query: str, expected: list[str]) -> None:
    assert listed(server, query) == expected


def test_runs_that_recorded_nothing_for_a_while_are_open_unless_a_status_is_named(server: Server) -> None:
    assert listed(server, "unchanged=0ms") == ["family-1", "family-1.nap", "o-1", "p-1", "s-1"]
    assert listed(server, "unchanged=0ms&status=failed") == ["fragile-1"]
    assert server.get(f"{API}/runs?unchanged=soon").status == 422


def test_a_row_names_its_parent_its_root_and_why_it_failed(server: Server) -> None:
    rows = {run["id"]: run for run in server.get(f"{API}/runs").json["runs"]}

    assert (rows["family-1.nap"]["parent"], rows["family-1.nap"]["root"]) == ("family-1", "family-1")
    assert (rows["o-1"]["parent"], rows["o-1"]["root"], rows["o-1"]["failure"]) == (None, "o-1", None)
    failure = rows["fragile-1"]["failure"]
    assert failure["type"]
    assert "broken 1" in failure["message"]
    assert failure["place"] == "break_down"


def pages(server: Server, query: str) -> list[str]:
    found, cursor = [], ""
    while True:
        page = server.get(f"{API}/runs?{query}{cursor}").json
        found += [run["id"] for run in page["runs"]]
        if page["cursor"] is None:
            return found
        cursor = f"&cursor={quoted(page['cursor'])}"


@pytest.mark.parametrize(
    "query", ["", "q=o&", "q=h&", "waits=message&waits=time&waits=step&", "status=failed&status=running&"]
)
def test_pages_show_every_run_once_and_in_order(server: Server, query: str) -> None:
    everything = [run["id"] for run in server.get(f"{API}/runs?{query}limit=100").json["runs"]]

    assert pages(server, f"{query}limit=1") == everything
    assert pages(server, f"{query}limit=2") == everything


def counted(server: Server, query: str) -> dict[str, Any]:
    answer = server.get(f"{API}/counts?{query}")
    assert answer.status == 200, answer.raw
    assert not any(one["more"] for one in answer.json["counts"])
    return {one["key"]: one["count"] for one in answer.json["counts"]}


@covers("countRuns")
def test_counts_by_status_are_of_all_statuses_that_the_rest_of_the_filter_leaves(server: Server) -> None:
    assert counted(server, "by=status") == {"running": 5, "completed": 2, "failed": 1}
    assert counted(server, "by=status&status=failed") == {"running": 5, "completed": 2, "failed": 1}
    assert counted(server, "by=status&workflow=hello") == {"completed": 2}
    assert counted(server, "by=status&q=hello") == {"completed": 2}
    assert counted(server, "by=status&waits=person") == {"running": 1}


def test_counts_by_workflow_and_hour_say_how_many_failed(server: Server) -> None:
    by_workflow = server.get(f"{API}/counts?by=workflow").json["counts"]
    assert {one["key"]: (one["count"], one["failed"]) for one in by_workflow} == {
        "fragile": (1, 1), "hello": (2, 0), "nap": (1, 0), "order": (1, 0), "parent": (1, 0), "picture": (1, 0),
        "ship": (1, 0),
    }  # fmt: skip

    by_hour = server.get(f"{API}/counts?by=hour").json["counts"]
    assert len(by_hour) == 24
    assert sum(one["count"] for one in by_hour) == 8
    assert sum(one["failed"] for one in by_hour) == 1
    assert [one["key"] for one in by_hour] == sorted(one["key"] for one in by_hour)
