"""Messages with an answer over HTTP: waited for, asked for again, and refused with a reason."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, covers, serving


def teller() -> weft.App:
    app = weft.App("memory://")

    @app.workflow
    async def account(ctx: weft.Context) -> int:
        total = 0
        while True:
            message = await ctx.receive("add", int, answer=True)
            if not message.body:
                return total
            total += message.body
            await ctx.receive("go") if message.body == 13 else None
            await message.answer({"total": total})

    return app


@pytest.fixture
def server() -> Any:
    with serving(teller()) as running:
        running.start("account", "a")
        yield running


@covers("sendRequest")
def test_a_request_waits_for_its_answer(server: Server) -> None:
    answer = server.post(f"{API}/runs/a/requests?wait=60", {"name": "add", "body": 5})

    assert answer.status == 200
    assert (answer.json["status"], answer.json["answer"]) == ("answered", {"total": 5})


@covers("sendRequest", "getAnswer")
def test_a_request_without_an_answer_yet_names_the_place_to_ask_again(server: Server) -> None:
    first = server.post(f"{API}/runs/a/requests", {"name": "add", "body": 13}, Idempotency_Key="k")
    assert (first.status, first.json["status"]) == (202, "waiting")
    place = first.headers["location"]
    assert server.get(place).status == 202
    again = server.post(f"{API}/runs/a/requests", {"name": "add", "body": 13}, Idempotency_Key="k")
    assert again.headers["location"] == place

    server.post(f"{API}/runs/a/messages", {"name": "go"})
    last = server.get(f"{place}?wait=60")
    assert (last.status, last.json["answer"]) == (200, {"total": 13})
    assert server.post(f"{API}/runs/a/requests", {"name": "add", "body": 14}, Idempotency_Key="k").code == (
        "run.key_reused"
    )


def test_requests_that_cannot_be_answered_are_refused_with_a_reason(server: Server) -> None:
    assert server.post(f"{API}/runs/nobody/requests", {"name": "add"}).code == "run.not_found"
    assert server.get(f"{API}/runs/a/requests/never-made").code == "run.not_found"
    misfit = server.post(f"{API}/runs/a/requests?wait=60", {"name": "add", "body": "five"})
    assert (misfit.status, misfit.code) == (422, "value.wrong_type")
    unanswered = server.post(f"{API}/runs/a/requests?wait=60", {"name": "add", "body": 0})
    assert (unanswered.status, unanswered.code) == (409, "run.finished")
    assert server.post(f"{API}/runs/a/requests", {"name": "add", "body": 1}).code == "run.finished"


def test_a_client_of_the_server_asks_in_the_same_words(server: Server) -> None:
    found: list[Any] = []

    async def ask() -> None:
        async with weft.Client(server.url) as client:
            found.append(await client.get("a").request("add", 5, timeout="1m"))
            with pytest.raises(weft.TimedOut):
                await client.get("a").request("add", 13, timeout=0.2, key="k")
            await client.get("a").send("go")
            found.append(await client.get("a").request("add", 13, key="k"))

    asyncio.run(ask())

    assert found == [{"total": 5}, {"total": 18}]
