"""Dry runs of commands over HTTP: one shape for all of them, and nothing is written."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, covers, serving

GRAPH = {
    "name": "parcel",
    "input": {"n": "integer"},
    "nodes": {
        "begin": {"pass": True, "next": "pay"},
        "pay": {"step": "pay", "with": {"n": "${input.n}"}, "retry": 1, "next": "wait"},
        "wait": {"receive": "go"},
    },
}


def make_app() -> weft.App:
    app = weft.App("memory://")
    paid: set[int] = set()

    @app.step
    async def reserve(n: int) -> int:
        return n

    @reserve.undo
    async def release(n: int) -> None:
        """Give the reservation back."""

    @app.step(retries=0)
    async def pay(n: int) -> int:
        if n not in paid:
            paid.add(n)
            raise OSError("no money")
        return n

    @app.workflow
    async def order(ctx: weft.Context, n: int) -> str:
        await reserve(n)
        await ctx.receive("go")
        return "sent"

    @app.workflow
    async def payment(ctx: weft.Context, n: int) -> int:
        await ctx.now()
        return await pay(n)

    app.graph(GRAPH)
    return app


@pytest.fixture
def stage() -> Any:
    with serving(make_app()) as running:
        yield running


def places(planned: list[dict[str, Any]]) -> list[str]:
    return [one["place"] for one in planned]


def log(server: Server, run: str) -> Any:
    """Return everything that the store has about a run and its relatives."""
    listed = server.get(f"{API}/runs?all=true").json["runs"]
    return listed, server.get(f"{API}/runs/{run}/events").json


@covers("cancelRun")
def test_the_dry_run_of_a_cancel_says_what_is_undone_and_given_up(stage: Server) -> None:
    stage.start("order", "o", n=1)
    stage.until("o", "message_awaited")
    before = log(stage, "o")

    plan = stage.post(f"{API}/runs/o/cancel", {"dry_run": True}).json

    assert plan["ok"]
    assert (places(plan["undone"]), places(plan["cancelled"])) == (["reserve"], ["go"])
    assert "Gives up 1 open place, undoes 1 step and cancels 0 runs below it." in plan["summary"]
    assert log(stage, "o") == before


@covers("retryRun")
def test_the_dry_run_of_a_retry_says_what_is_performed_again(stage: Server) -> None:
    for workflow in ("payment", "parcel"):
        run = stage.start(workflow, workflow, n=len(workflow))
        assert stage.result(run)["status"] == "failed"
        before = log(stage, run)

        plan = stage.post(f"{API}/runs/{run}/retry", {"dry_run": True}).json

        assert plan["ok"], plan
        assert [one["box"] for one in plan["repeated"]] == ["pay"]
        assert log(stage, run) == before


@covers("forkRun")
def test_the_dry_run_of_a_fork_says_what_is_taken_over(stage: Server) -> None:
    stage.start("order", "f", n=1)
    seq = stage.until("f", "message_awaited")
    before = log(stage, "f")

    answer = stage.post(f"{API}/runs/f/fork", {"dry_run": True, "before": "go", "input": {"n": 2}})
    refused = stage.post(f"{API}/runs/f/fork", {"dry_run": True, "at": 900}).json

    assert (answer.status, answer.json["ok"], places(answer.json["repeated"])) == (200, True, ["go"])
    assert answer.json["summary"] == f"Takes over {seq - 1} of {seq} events; 1 later place may run again."
    assert (refused["ok"], refused["refused"][0]["code"]) == (False, "fork.no_point")
    assert log(stage, "f") == before


@covers("setResult")
def test_the_dry_run_of_a_result_says_whether_it_fits(stage: Server) -> None:
    stage.start("order", "s", n=1)
    stage.until("s", "message_awaited")
    stage.post(f"{API}/runs/s/pause")
    stage.until("s", "run_paused")
    before = log(stage, "s")

    fits = stage.post(f"{API}/runs/s/set", {"dry_run": True, "place": "reserve", "output": 5}).json
    wrong = stage.post(f"{API}/runs/s/set", {"dry_run": True, "place": "reserve", "output": "x" * 50_000}).json
    nowhere = stage.post(f"{API}/runs/s/set", {"dry_run": True, "place": "nowhere", "output": 5}).json

    assert (fits["ok"], places(fits["repeated"])) == (True, ["go"])
    assert (wrong["ok"], wrong["refused"][0]["code"]) == (False, "value.wrong_type")
    assert (nowhere["ok"], len(nowhere["refused"])) == (False, 1)
    assert log(stage, "s") == before


@covers("cancelRun", "retryRun")
def test_a_command_that_the_status_refuses_says_so_in_its_dry_run(stage: Server) -> None:
    run = stage.start("payment", "over", n=3)
    stage.result(run)
    stage.start("order", "open", n=1)
    stage.until("open", "message_awaited")

    cancel = stage.post(f"{API}/runs/over/cancel", {"dry_run": True}).json
    retry = stage.post(f"{API}/runs/open/retry", {"dry_run": True}).json

    assert (cancel["ok"], cancel["refused"][0]["code"]) == (False, "run.finished")
    assert (retry["ok"], retry["refused"][0]["message"]) == (False, "open is running, so it cannot be retried.")
    assert stage.post(f"{API}/runs/nobody/cancel", {"dry_run": True}).status == 404
