"""Starts of workflows with rules, over HTTP."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import weft
from tests.server.keyring import Caller, caller
from tests.server.kit import API, Server, serving


def site() -> weft.App:
    app = weft.App("memory://")

    @app.workflow(singleton=weft.Singleton("customer", then="refuse"))
    async def sync(ctx: weft.Context, customer: str) -> None:
        await ctx.receive("go")

    @app.workflow(batch=weft.Batch(size=3, wait="1h"))
    async def index(items: list[str]) -> str:
        return "+".join(items)

    @app.workflow
    async def plain(ctx: weft.Context) -> None:
        await ctx.receive("go")

    return app


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(site()) as running:
        yield running


def test_a_refused_start_is_a_conflict_that_names_the_open_run(server: Server) -> None:
    first = server.start("sync", customer="ann")

    answer = server.post(f"{API}/runs", {"workflow": "sync", "input": {"customer": "ann"}})

    assert (answer.status, answer.code) == (409, "run.open")
    assert first in answer.json["detail"]


def test_starts_with_the_same_idempotency_key_add_an_input_once(server: Server) -> None:
    def add(key: str, item: str) -> Any:
        body = {"workflow": "index", "input": {"items": [item]}}
        return server.post(f"{API}/runs", body, **{"idempotency-key": key})

    answers = [add("one", "a"), add("two", "b"), add("two", "b"), add("one", "a"), add("three", "c")]

    assert [answer.status for answer in answers] == [201, 200, 200, 200, 200]
    (run,) = {answer.json["id"] for answer in answers}
    assert server.result(run)["output"] == "a+b+c"
    assert add("two", "b").json["id"] == run
    assert add("two", "other").code == "run.key_reused"


def test_an_input_that_has_no_key_is_refused(server: Server) -> None:
    answer = server.post(f"{API}/runs", {"workflow": "index", "input": {"items": []}})

    assert (answer.status, answer.code) == (422, "start.bad_batch")


def test_a_pending_batch_is_explained(server: Server) -> None:
    run = server.start("index", items=["x"])

    found = server.get(f"{API}/runs/{run}/explain").json

    assert found["diagnosis"]["start_wait"] == {"kind": "batch", "key": "", "inputs": 1, "size": 3}


def test_a_start_has_a_priority(server: Server) -> None:
    answer = server.post(f"{API}/runs", {"workflow": "plain", "priority": 7})

    assert server.get(f"{API}/runs/{answer.json['id']}").json["priority"] == 7
    assert server.post(f"{API}/runs", {"workflow": "plain", "priority": 5_000}).status == 422


def test_a_client_of_the_server_obeys_the_rule(server: Server) -> None:
    async def play() -> str:
        async with weft.Client(f"http://127.0.0.1:{server.port}") as client:
            first = await client.start("sync", {"customer": "bob"}, priority=3)
            with pytest.raises(weft.RunOpen):
                await client.start("sync", {"customer": "bob"})
            return first.id

    assert server.get(f"{API}/runs/{asyncio.run(play())}").json["priority"] == 3


def test_tenants_do_not_share_keys() -> None:
    with serving(site()) as running:
        callers: list[Caller] = [caller(running, "ann", "admin", tenant=tenant) for tenant in ("a", "b")]
        body = {"workflow": "sync", "input": {"customer": "ann"}, "id": "mine"}

        assert [one.post(f"{API}/runs", body).status for one in callers] == [201, 201]
        refused = callers[0].post(f"{API}/runs", {**body, "id": "other"})
        assert (refused.status, "@a" in refused.json["detail"]) == (409, False)
