"""``weft.Client("http://…")``: what a client of a store can do, over the API of a server that is really there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import weft
from tests.server.keyring import add_key
from tests.server.kit import Server, serving
from tests.server.shop import shop
from tests.servers import free_port
from weft.errors import Unavailable

STEPS = {
    "weft": "steps/1",
    "steps": {
        "price": {"step": "greet", "needs": {"name": "string"}, "gives": {"total": "string"}},
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(shop()) as running:
        yield running


def talk(server: Server, body: Callable[[weft.Client], Awaitable[Any]], key: str | None = None) -> Any:
    async def main() -> Any:
        async with weft.Client(server.url, key=key) as client:
            return await body(client)

    return asyncio.run(main())


def test_a_run_is_started_by_name_and_its_result_waited_for(server: Server) -> None:
    async def body(client: weft.Client) -> None:
        handle = await client.start("hello", {"name": "ann"}, attributes={"team": "a"})
        assert await handle.result(timeout=120) == "hello ann!"
        assert await handle.status() == "completed"
        again = await client.start("hello", {"name": "ann"}, id=handle.id)
        assert again.id == handle.id
        found = [run.id async for run in client.list(workflow="hello", where={"team": "a"}, since=timedelta(hours=1))]
        assert found == [handle.id]
        assert [run.id async for run in client.list(status="failed", where={"team": "a"})] == []

    talk(server, body)


def test_the_ids_of_runs_may_hold_anything(server: Server) -> None:
    async def body(client: weft.Client) -> None:
        handle = await client.start("hello", {"name": "ann"}, id="a/b c?d#é%2F")
        assert await handle.result(timeout=120) == "hello ann!"
        assert await client.get("a/b c?d#é%2F").status() == "completed"

    talk(server, body)


def test_messages_pauses_and_the_log(server: Server) -> None:
    async def body(client: weft.Client) -> None:
        handle = await client.start("order", {"order_id": "o-1"})
        following = asyncio.ensure_future(_kinds(handle))
        await handle.pause()
        assert await handle.status() == "paused"
        await handle.resume()
        waiting = await handle.explain()
        assert waiting.run == handle.id
        with pytest.raises(weft.TimedOut):
            await handle.result(timeout="50ms")
        await handle.send("quote", 7, key="q-1")
        await handle.send("quote", 7, key="q-1")
        assert await handle.result(timeout=120) == "o-1 for 7"
        kinds = [event.kind async for event in handle.events()]
        assert kinds.count("message_received") == 1
        assert await following == kinds
        assert min([event.seq async for event in handle.events(after=2)]) == 3

    talk(server, body)


async def _kinds(handle: weft.Handle[Any]) -> list[str]:
    return [event.kind async for event in handle.events(follow=True)]


def test_a_failure_is_told_and_can_be_tried_again(server: Server) -> None:
    async def body(client: weft.Client) -> None:
        handle = await client.start("fragile", {"n": 41})
        with pytest.raises(weft.RunFailed) as failed:
            await handle.result(timeout=120)
        assert "broken 41" in failed.value.failure.message
        await handle.retry()
        assert await handle.result(timeout=120) == 41

    talk(server, body)


def test_a_run_is_cancelled_with_a_reason(server: Server) -> None:
    async def body(client: weft.Client) -> None:
        handle = await client.start("order", {"order_id": "o-2"})
        await handle.cancel("no longer wanted")
        with pytest.raises(weft.RunCancelled, match="no longer wanted"):
            await handle.result(timeout=120)
        with pytest.raises(weft.RunFinished):
            await handle.pause()

    talk(server, body)


def test_a_question_is_answered(server: Server) -> None:
    async def body(client: weft.Client) -> None:
        handle = await client.start("ship", {"order_id": "o-3"})
        async for event in handle.events(follow=True):
            if event.kind == "ask_opened":
                break
        with pytest.raises(weft.BadValue):
            await handle.decide("carrier", approved=True, by="ann", form={"carrier": 1})
        await handle.decide("carrier", approved=True, by="ann", form={"carrier": "post"})
        assert (await handle.result(timeout=120))["carrier"] == "post"

    talk(server, body)


@pytest.mark.parametrize(
    ("error", "code", "ask"),
    [
        (weft.UnknownWorkflow, "usage.unknown_workflow", lambda client: client.start("nobody")),
        (weft.NotFound, "run.not_found", lambda client: client.get("nobody").status()),
        (weft.BadValue, "value.wrong_type", lambda client: client.start("hello", {"name": 1})),
        (weft.BadValue, "value.not_json", lambda client: client.start("hello", {"name": object()})),
        (weft.UnknownStep, "usage.unknown_step", lambda client: client.plan("nothing")),
    ],
    ids=["workflow", "run", "type", "json", "goal"],
)
def test_errors_of_the_server_are_the_errors_of_weft(
    server: Server, error: type[weft.WeftError], code: str, ask: Callable[[weft.Client], Awaitable[Any]]
) -> None:
    with pytest.raises(error) as raised:
        talk(server, ask)
    assert raised.value.code == code
    assert raised.value.message


def test_an_id_that_is_taken(server: Server) -> None:
    async def body(client: weft.Client) -> None:
        await client.start("hello", {"name": "ann"}, id="taken")
        with pytest.raises(weft.IdTaken):
            await client.start("hello", {"name": "bob"}, id="taken")
        with pytest.raises(weft.IdTaken):
            await client.start("hello", {"name": "ann"}, id="taken", existing="refuse")

    talk(server, body)


def test_a_goal_is_planned_with_the_steps_of_the_server(server: Server) -> None:
    assert server.post("/api/v1/steps", {"document": STEPS}).status in (200, 201)

    async def body(client: weft.Client) -> None:
        plan = await client.plan("price", given=["name"])
        assert plan.steps == ["price"]
        assert plan.missing == {}
        assert (await client.plan("price")).required == ["name"]

    talk(server, body)


def test_add_key_is_sent_or_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(shop()) as server:
        key = add_key(server, "ann", "read", "start")

        async def body(client: weft.Client) -> Any:
            handle = await client.start("hello", {"name": "ann"})
            return await handle.result(timeout=120)

        with pytest.raises(weft.NotAllowed) as refused:
            talk(server, body)
        assert refused.value.code == "access.unknown"
        assert talk(server, body, key=key) == "hello ann!"
        with pytest.raises(weft.NotAllowed):
            talk(server, lambda client: client.get("x").cancel(), key=key)
        monkeypatch.setenv("WEFT_KEY", key)
        assert talk(server, body) == "hello ann!"


def test_add_key_is_not_for_a_store() -> None:
    with pytest.raises(weft.UsageError):
        weft.Client("memory://", key="weft_x")


def test_a_server_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.authoring.remote.PAUSES_SECONDS", (0.01,))
    port = free_port()

    async def main() -> None:
        async with weft.Client(f"http://127.0.0.1:{port}") as client:
            await client.get("x").status()

    with pytest.raises(Unavailable, match="does not answer"):
        asyncio.run(main())
