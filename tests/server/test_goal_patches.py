"""Patches of goal runs, over HTTP and by a client of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import weft
from tests.server.kit import API, Server, covers, serving


@pytest.fixture
def server() -> Iterator[Server]:
    app = weft.App("memory://")

    @app.step(gives="amount")
    async def measure(order_id: str) -> float:
        await asyncio.Event().wait()
        return 1.0

    @app.step(gives="total")
    async def add_up(amount: float) -> float:
        return amount * 2

    @app.step(gives="note")
    async def describe(total: float) -> str:
        return f"it is {total}"

    app.goal("summed", add_up)
    with serving(app) as running:
        yield running
        running.post(f"{API}/runs/s-1/cancel")  # or the host waits for its step


@covers("patchRun", "undoPatch", "getRunVersions")
def test_a_goal_run_is_patched_and_the_patch_is_undone(server: Server) -> None:
    run = server.start("summed", id="s-1", order_id="o-1")
    server.until(run, "step_started")
    path = f"{API}/runs/{run}"
    patch = {"goals": {"add": ["describe"]}, "catalogue": "now"}

    planned = server.post(f"{path}/patch", {"patch": patch, "dry_run": True}).json
    assert [(entry["what"], entry["place"]) for entry in planned["entries"]] == [("joins", "describe")]
    done = server.post(f"{path}/patch", {"patch": patch, "expect": planned["digest"], "by": "ann"}).json
    assert done["applied"] is True
    assert server.post(f"{path}/patch/undo", {"reason": "not now"}).json["undoes"] == 1
    assert server.post(f"{path}/patch/undo", {"redo": True}).json["undoes"] == 2
    assert server.post(f"{path}/patch", {"patch": {"given": {"amount": 4}}}).json["applied"] is True

    assert server.result(run)["output"]["result"] == {"note": "it is 8.0", "total": 8.0}
    assert [one.get("by", "") for one in server.get(f"{path}/versions").json["versions"]][:2] == ["", "ann"]


def test_an_undo_completes_the_run_only_with_leave(server: Server) -> None:
    run = server.start("summed", id="s-1", order_id="o-1")
    server.until(run, "step_started")
    path = f"{API}/runs/{run}"
    server.post(f"{path}/patch", {"patch": {"goals": {"add": ["measure"]}}})
    server.post(f"{path}/patch", {"patch": {"given": {"amount": 4}}})
    server.until(run, "step_completed")
    server.post(f"{path}/patch/undo", {})

    assert server.post(f"{path}/patch/undo", {}).code == "patch.would_end"
    assert server.post(f"{path}/patch/undo", {"ends": True}).json["applied"] is True
    assert server.result(run)["output"]["result"] == {"total": 8.0}


def test_a_refused_patch_is_a_problem_with_all_findings(server: Server) -> None:
    run = server.start("summed", id="s-1", order_id="o-1")
    server.until(run, "step_started")

    answer = server.post(f"{API}/runs/{run}/patch", {"patch": {"given": {"order_id": "o-2"}, "goals": {"add": ["x"]}}})

    assert answer.status == 409
    assert [(found["code"], found["place"]) for found in answer.json["findings"]] == [
        ("patch.unknown_goal", "x"),
        ("patch.fact_known", "order_id"),
    ]
    assert server.post(f"{API}/runs/{run}/patch", {"patch": {"move": []}}).code == "patch.invalid"
    assert server.post(f"{API}/runs/{run}/patch", {"patch": {"steps": {"n": {}}}}).code == "goal.bad_way"


def test_a_client_patches_a_goal_run(server: Server) -> None:
    run = server.start("summed", id="s-1", order_id="o-1")

    async def story() -> object:
        async with weft.Client(server.url) as client:
            handle = client.get(run)
            with pytest.raises(weft.PatchRefused) as caught:
                await handle.patch(goals={"remove": ["add_up"]})
            assert [refusal.code for refusal in caught.value.plan.refusals] == ["patch.no_goals"]
            assert (await handle.patch(given={"amount": 4})).applied
            return await handle.result(timeout=200)

    facts = asyncio.run(story())
    assert facts["facts"]["total"] == 8.0  # type: ignore[index]
