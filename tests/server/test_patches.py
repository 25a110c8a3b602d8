"""Patches of runs, over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

import weft
from tests.server.keyring import caller
from tests.server.kit import API, Server, covers, serving

GRAPH = {
    "name": "order",
    "nodes": {
        "a": {"receive": "go", "next": "b"},
        "b": {"receive": "go", "next": "c"},
        "c": {"receive": "on"},
    },
}
SHORTER = {"name": "order", "nodes": {"a": {"receive": "go", "next": "c"}, "c": {"receive": "on"}}}


@pytest.fixture
def orders() -> Iterator[Server]:
    app = weft.App("memory://")
    app.graph(GRAPH)
    with serving(app) as running:
        yield running


@covers("patchRun", "getPatchRequest", "getPatchRequests", "withdrawPatch", "getChanges")
def test_a_patch_that_waits_or_is_reviewed_is_accepted_and_says_where_to_look(orders: Server) -> None:
    run = orders.start("order", id="o-1")
    orders.until(run, "message_awaited")
    path = f"{API}/runs/{run}"
    document = {"name": "order", "nodes": {"b": {"receive": "go", "next": "c"}, "c": {"receive": "on"}}}

    waits = orders.post(f"{path}/patch", {"patch": {"document": document}, "wait": "2h", "by": "ann"})
    review = orders.post(f"{path}/patch", {"patch": {"document": SHORTER}, "review": ["team:ops"], "by": "ann"})

    assert (waits.status, review.status) == (202, 202)
    assert orders.get(waits.headers["location"]).json["status"] == "waiting"
    assert orders.get(review.headers["location"]).json["review"] == ["team:ops"]
    assert [one["status"] for one in orders.get(f"{path}/patch").json["patches"]] == ["waiting", "in_review"]
    explained = orders.get(f"{path}/explain").json["waiting"]
    assert {one["kind"] for one in explained} == {"message", "patch", "ask"}
    assert "Patch o-1?" in next(one["what"] for one in explained if one["kind"] == "ask")
    gone = orders.ask("DELETE", waits.headers["location"], {"reason": "no", "by": "bob"}).json
    assert (gone["status"], gone["message"]) == ("dropped", "by bob: no")
    assert orders.ask("DELETE", f"{path}/patch/nothing", {}).code == "run.not_found"
    kinds = [one["kind"] for one in orders.get(f"{path}/changes").json["changes"]]
    assert kinds == ["patch_asked", "patch_asked", "patch_review_asked", "patch_dropped"]
    assert orders.post(f"{path}/patch", {"patch": {"ops": []}, "wait": "soon"}).status == 422
    nothing = orders.post(f"{path}/patch", {"patch": {"ops": []}})
    assert (nothing.status, nothing.json["unchanged"]) == (200, True)


def test_a_client_lets_a_patch_wait_and_withdraws_it(orders: Server) -> None:
    run = orders.start("order", id="o-1")
    orders.post(f"{API}/runs/{run}/messages", {"name": "go", "body": None})
    orders.until(run, "node_routed")

    async def story() -> None:
        async with weft.Client(orders.url) as client:
            handle = client.get(run)
            plan = await handle.patch([], wait="2h", at="c", by="ann")
            assert [one.asked for one in await handle.patch_requests()] == [plan.asked]
            assert (await handle.withdraw_patch(by="ann")).status == "dropped"

    asyncio.run(story())


@covers("patchRun", "undoPatch", "getRunVersions")
def test_a_schedule_is_not_patched(server: Server) -> None:
    new = {"name": "yearly", "workflow": "hello", "input": {"name": "a"}, "cron": "0 0 1 1 *"}
    assert server.post(f"{API}/schedules", new).status == 200
    path = f"{API}/runs/schedule%2Fyearly"

    assert server.post(f"{path}/patch", {"patch": {"ops": []}}).status == 409
    assert server.post(f"{path}/patch/undo", {}).code == "patch.nothing_to_undo"
    assert [one["rev"] for one in server.get(f"{path}/versions").json["versions"]] == [0]


def test_a_run_that_does_not_exist(server: Server) -> None:
    assert server.post(f"{API}/runs/nobody/patch", {"patch": {"ops": []}}).code == "run.not_found"
    assert server.post(f"{API}/runs/nobody/patch/undo", {}).code == "run.not_found"
    assert server.get(f"{API}/runs/nobody/versions").code == "run.not_found"


@covers("patchRun", "decide", "patchWorkflow")
def test_who_operates_asks_who_decides_answers_and_only_an_admin_sets_who_is_asked(orders: Server) -> None:
    operator, decider, admin = (caller(orders, name, name) for name in ("operate", "decide", "admin"))
    reviewer = caller(orders, "bob", "decide", groups=["team:ops"])
    run = operator.post(f"{API}/runs", {"workflow": "order", "id": "o-1", "input": {}})
    assert run.status == 403
    assert admin.post(f"{API}/runs", {"workflow": "order", "id": "o-1", "input": {}}).status == 201
    body = {"patch": {"document": SHORTER}, "review": ["team:ops"]}

    assert decider.post(f"{API}/runs/o-1/patch", body).status == 403
    asked = operator.post(f"{API}/runs/o-1/patch", body).json["asked"]
    question = f"{API}/approvals/o-1%3Apatch%40{asked}/decision"
    assert operator.post(question, {"approved": True}).status == 403
    assert decider.post(question, {"approved": True}).code == "ask.not_yours"
    assert reviewer.post(question, {"approved": True}).status == 200
    while admin.get(f"{API}/runs/o-1/patch/{asked}").json["status"] != "applied":
        time.sleep(0.02)

    review = {"tag": "live", "patch": {"ops": [{"op": "add", "path": "/changes", "value": {"review": ["team:ops"]}}]}}
    assert operator.post(f"{API}/workflows/order/patch", review).status == 403
    assert admin.post(f"{API}/workflows/order/patch", review).status == 200
    same = {"tag": "live", "patch": {"ops": [{"op": "add", "path": "/description", "value": "an order"}]}}
    assert operator.post(f"{API}/workflows/order/patch", same).status == 200
