"""`compensate`: the HTTP undo of a step, in goals and in graphs."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

import weft
from tests.steps.http_kit import go, serving
from weft.core.goal.checks import BadStep
from weft.testing import World


def charging(**http: Any) -> dict[str, Any]:
    call = {
        "url": "https://shop.example/charge/{order_id}",
        "compensate": "https://shop.example/undo/{receipt}",
        **http,
    }
    return {
        "charge": {
            "http": call,
            "needs": ["order_id"],
            "gives": ["receipt"],
            "retry": {"attempts": 2, "delay": "1s"},
        },
        "ship": {"http": "https://shop.example/ship", "needs": ["receipt"], "gives": ["parcel"]},
    }


def test_a_failed_run_takes_back_what_its_steps_called() -> None:
    app = weft.App("memory://")
    app.steps({"steps": charging()})
    world = World(app)
    world.fake("charge", {"receipt": "r-1"})
    world.fake("ship", weft.Critical("no stock"))
    world.fake("charge.compensate", None)
    run = world.start(app.goal("shipped", "ship"), {"order_id": "o-1"})

    with pytest.raises(weft.RunFailed, match="no stock"):
        run.result()
    (undone,) = world.calls("charge.compensate")
    assert undone.key.endswith("/charge!undo")


@pytest.mark.parametrize("style", ["goal", "graph"])
def test_the_service_is_really_called(monkeypatch: pytest.MonkeyPatch, style: str) -> None:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", "127.0.0.1")
    seen: list[tuple[str, Any]] = []

    async def shop(request: web.Request) -> web.StreamResponse:
        seen.append((request.path, await request.json()))
        status = 422 if request.path == "/ship" else 200
        return web.json_response({"receipt": "r-1"}, status=status)

    async def scenario() -> None:
        app = weft.App("memory://")
        async with serving(shop) as base:
            steps = charging(url=f"{base}/charge/{{order_id}}", compensate=f"{base}/undo/{{receipt}}")
            steps["ship"]["http"] = f"{base}/ship"
            app.steps({"steps": steps})
            nodes: dict[str, Any] = {"charge": {"step": "charge", "next": "ship"}, "ship": {"step": "ship"}}
            graph = app.graph({"name": "shipping", "input": {"order_id": "string"}, "nodes": nodes})
            goal = app.goal("shipped", "ship")
            async with app:
                run: weft.Handle[Any] = await app.start(goal if style == "goal" else graph, {"order_id": "o-1"})
                with pytest.raises(weft.RunFailed):
                    await run.result()

    go(scenario())
    assert [path for path, _ in seen] == ["/charge/o-1", "/ship", "/undo/r-1"]
    assert seen[2][1] == {"input": {"order_id": "o-1"}, "output": {"receipt": "r-1"}}


def test_an_undo_that_fails_is_tried_as_its_step_is() -> None:
    app = weft.App("memory://")
    app.steps({"steps": charging()})
    world = World(app)
    world.fake("charge", {"receipt": "r-1"})
    world.fake("ship", weft.Critical("no stock"))
    world.fake("charge.compensate", OSError("down"), None)
    with pytest.raises(weft.RunFailed):
        world.run(app.goal("shipped", "ship"), {"order_id": "o-1"})

    assert [call.attempt for call in world.calls("charge.compensate")] == [1, 2]


def test_a_node_that_names_such_a_step_is_taken_back_too() -> None:
    app = weft.App("memory://")
    app.steps({"steps": charging()})
    nodes: dict[str, Any] = {"charge": {"step": "charge", "next": "ship"}, "ship": {"step": "ship"}}
    graph = app.graph({"name": "shipping", "input": {"order_id": "string"}, "nodes": nodes})
    world = World(app)
    world.fake("charge", {"receipt": "r-1"})
    world.fake("ship", weft.Critical("no stock"))
    world.fake("charge.compensate", None)
    with pytest.raises(weft.RunFailed):
        world.run(graph, {"order_id": "o-1"})

    assert len(world.calls("charge.compensate")) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"http": {"url": "https://a.example", "compensate": "https://a.example/{nobody}"}}, "nobody"),
        ({"http": {"url": "https://a.example", "compensate": "a.example"}}, "URL"),
        ({"undo": "refund"}, "both say how to undo it"),
        ({"cache": True}, "a step with an undo cannot be cached"),
        ({"needs": {"order_id": "string", "x": {"name": "result"}}}, "gets the result"),
    ],
    ids=["place", "URL", "twice", "cached", "name"],
)
def test_what_cannot_work_is_refused_at_the_door(change: dict[str, Any], told: str) -> None:
    steps = charging()
    steps["charge"] |= change

    with pytest.raises(BadStep, match=told):
        weft.App("memory://").steps({"steps": steps})


def test_such_a_plan_is_not_frozen_because_the_undo_would_be_lost() -> None:
    app = weft.App("memory://")
    app.steps({"steps": charging()})

    with pytest.raises(weft.BadPlan, match="its undo"):
        app.plan("charge", given=["order_id"]).freeze("charged")
