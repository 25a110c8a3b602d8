"""Cached steps: equal work is done once, and a committed success answers for it, with where it comes from."""

import asyncio
from typing import Any

import msgspec
import pytest

import weft
from weft.core.goal.planner import make_plan
from weft.core.ids import Millis, RunId
from weft.errors import RunFailed
from weft.ports.memos import Memo
from weft.runtime.memo_lookup import find_reusable, memo_key
from weft.stores.memory import MemoryStore
from weft.testing import World


def an_app(cache: Any = True, **options: Any) -> tuple[weft.App, weft.Step[..., Any]]:
    app = weft.App("memory://")

    @app.step(gives="total", cache=cache, **options)
    async def price(order_id: str, country: str = "de") -> dict[str, str]:
        return {"for": order_id, "in": country}

    return app, price


def test_a_second_run_with_equal_inputs_is_answered_from_the_first() -> None:
    app, price = an_app()
    world = World(app)
    first = world.start(app.goal("priced", price), {"order_id": "o-1"}, id="first")
    first_result = first.result()
    second = world.start(app.registered.runnable_named("priced"), {"order_id": "o-1"}, id="second")

    assert second.result()["total"] == first_result["total"]
    assert len(world.calls(price)) == 1
    (recalled,) = [event for event in second.events if event.kind == "work_recalled"]
    (done,) = [event for event in first.events if event.kind == "task_succeeded"]
    assert recalled.data["run_id"] == "first"
    assert recalled.data["at"] == int(done.at.timestamp() * 1000)


def test_other_inputs_are_other_work_whatever_order_they_stand_in() -> None:
    app, price = an_app()
    world = World(app)
    goal = app.goal("priced", price)
    world.run(goal, {"order_id": "o-1", "country": "fr"})
    world.run(goal, {"country": "fr", "order_id": "o-1"})
    world.run(goal, {"order_id": "o-2", "country": "fr"})

    assert [call.args["order_id"] for call in world.calls(price)] == ["o-1", "o-2"]


def test_an_answer_is_too_old_when_its_time_is_over() -> None:
    app, price = an_app(cache="1h")
    world = World(app)
    goal = app.goal("priced", price)
    world.run(goal, {"order_id": "o-1"})
    world.advance("59m")
    world.run(goal, {"order_id": "o-1"})
    assert len(world.calls(price)) == 1
    world.advance("2m")
    world.run(goal, {"order_id": "o-1"})

    assert len(world.calls(price)) == 2


def test_failures_are_not_kept() -> None:
    app, price = an_app(retries=0)
    world = World(app)
    world.fake(price, ValueError("no"), {"for": "o-1"})
    goal = app.goal("priced", price)
    with pytest.raises(RunFailed):
        world.run(goal, {"order_id": "o-1"})

    assert world.run(goal, {"order_id": "o-1"})["total"] == {"for": "o-1"}
    assert len(world.calls(price)) == 2


def test_every_item_of_a_fan_out_is_looked_for_by_itself() -> None:
    app = weft.App("memory://")
    app.steps({"steps": {"greet": {
        "step": "greet", "needs": {"users": {"type": "string[]", "each": True, "name": "user"}},
        "gives": {"text": "string"}, "cache": True, "width": 3,
    }}})  # fmt: skip

    @app.step
    async def greet(user: str) -> dict[str, str]:
        return {"text": f"hi {user}"}

    world = World(app)
    goal = app.goal("greeted", "greet")
    world.run(goal, {"users": ["ann", "bob"]})
    again = world.start(goal, {"users": ["bob", "eve", "ann"]})

    assert again.result()["text"] == [
        {"users": "bob", "text": "hi bob"},
        {"users": "eve", "text": "hi eve"},
        {"users": "ann", "text": "hi ann"},
    ]
    # The items of a fan-out are performed in no fixed order.
    assert sorted(call.args["user"] for call in world.calls("greet")) == ["ann", "bob", "eve"]
    assert [event.kind for event in again.events].count("work_recalled") == 2


def test_a_large_result_is_recalled_from_its_blob() -> None:
    app = weft.App("memory://")

    @app.step(gives="text", cache=True)
    async def write(n: int) -> str:
        return "x" * n

    world = World(app)
    goal = app.goal("written", write)
    world.run(goal, {"n": 100_000})

    assert len(world.run(goal, {"n": 100_000})["text"]) == 100_000
    assert len(world.calls(write)) == 1


def test_a_blob_that_is_gone_costs_the_work_and_nothing_else() -> None:
    app = weft.App("memory://")

    @app.step(gives="text", cache=True)
    async def write(n: int) -> str:
        return "x" * n

    world = World(app)
    goal = app.goal("written", write)
    world.run(goal, {"n": 100_000})
    world._store.content.blobs.clear()
    world.restart()

    assert len(world.run(goal, {"n": 100_000})["text"]) == 100_000
    assert len(world.calls(write)) == 2


def test_a_result_that_is_not_what_its_step_declares_is_not_kept() -> None:
    app = weft.App("memory://")
    app.steps({"steps": {"count": {"step": "count", "gives": {"n": "integer"}, "cache": True}}})

    @app.step
    async def count() -> dict[str, Any]:
        return {"n": "many"}

    world = World(app)
    goal = app.goal("counted", "count")
    for _ in range(2):
        with pytest.raises(RunFailed, match="bad_output"):
            world.run(goal, {})

    assert len(world.calls("count")) == 2


def test_a_success_is_kept_before_a_crash_can_take_it_or_done_again() -> None:
    app, price = an_app()
    world = World(app)
    world.crash(at=price, when="after")
    goal = app.goal("priced", price)
    world.run(goal, {"order_id": "o-1"})
    world.run(goal, {"order_id": "o-1"})

    assert len(world.calls(price)) in (1, 2)
    assert len({call.key for call in world.calls(price)}) == len(world.calls(price)), "no call was made twice"


def test_a_preview_knows_what_would_be_reused_where_all_inputs_are_given() -> None:
    app, _ = an_app()

    @app.step(gives="mail", cache=True)
    async def send(total: dict[str, str], order_id: str) -> str:
        return "sent"

    plan = make_plan(app.registered.planner, ["send"], ["order_id"])
    definition = plan.steps["price"]
    memos = MemoryStore().memos
    key = memo_key(definition, b'{"order_id":"o-1","country":"de"}')
    memo = Memo(key=key, output=b"{}", run=RunId("first"), at=Millis(1))

    async def scenario() -> tuple[dict[str, Memo], dict[str, Memo]]:
        before = await find_reusable(plan, {"order_id": "o-1"}, memos, now=Millis(2))
        await memos.put(memo)
        return before, await find_reusable(plan, {"order_id": "o-1"}, memos, now=Millis(2))

    assert asyncio.run(scenario()) == ({}, {"price": memo})


def test_equal_work_under_another_name_is_equal_work() -> None:
    app, _ = an_app()
    definition = app.registered.planner.step("price")
    renamed = msgspec.structs.replace(definition, id="other", title="Another", labels={"a": "b"}, width=7)
    changed = msgspec.structs.replace(definition, gives={})
    assert memo_key(renamed, b'{"a": 1, "b": 2}') == memo_key(definition, b'{"b":2,"a":1}')
    assert memo_key(changed, b"{}") != memo_key(definition, b"{}")
