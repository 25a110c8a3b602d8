"""Rules about the person who started a run, and about child runs."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.core.run.questions import STARTED_BY, STARTED_ROLES
from weft.runtime.orders import StartOrder
from weft.testing import World, calls
from weft.testing.world import SimRun


def make_world(*rules: dict[str, Any]) -> World:
    app = weft.App(policy={"weft": "policy/1", "rules": list(rules)})
    app.model("fast", url="http://127.0.0.1:1/v1")

    @app.step(effect="pure")
    async def look(what: str) -> str:
        """Look something up."""
        return f"found {what}"

    @app.workflow
    async def pay(ctx: weft.Context, cents: int) -> int:
        await look("gold")
        return cents

    @app.workflow
    async def order(ctx: weft.Context, cents: int) -> str:
        try:
            return f"paid {await pay(cents)}"
        except weft.NotAllowed as refused:
            return refused.code

    app.agent("helper", model="fast", tools=[look, weft.tool(pay, effect="pure")])
    return World(app)


def start(world: World, workflow: str, by: str = "", roles: tuple[str, ...] = (), **given: Any) -> Any:
    attributes: dict[str, Any] = {STARTED_BY: by, STARTED_ROLES: list(roles)}

    async def go() -> str:
        return (await world._service.start(StartOrder(workflow=workflow, input=given, attributes=attributes))).id

    run_id = world.perform(go)
    return SimRun(world, run_id, lambda: world.app.get(run_id)).result()


def test_a_workflow_can_be_denied_to_a_person() -> None:
    world = make_world({"deny": "workflow", "names": ["pay"], "to": ["user:bob"]})

    with pytest.raises(weft.NotAllowed):
        start(world, "pay", "bob", cents=1)
    assert start(world, "pay", "ann", cents=1) == 1


def test_a_child_run_can_be_denied() -> None:
    world = make_world({"deny": "workflow", "names": ["pay"], "to": ["workflow:order"], "when": "args.cents > 100"})

    assert start(world, "order", cents=50) == "paid 50"
    assert start(world, "order", cents=500) == "policy.denied"
    assert start(world, "pay", cents=500) == 500


def test_child_runs_belong_to_the_person_who_started_the_first() -> None:
    world = make_world({"deny": "step", "names": ["look"], "to": ["role:trainee"]})

    assert start(world, "order", "ann", ("manager",), cents=1) == "paid 1"
    with pytest.raises(weft.RunFailed, match="not permitted"):
        start(world, "order", "bob", ("trainee",), cents=1)


def test_tools_can_be_denied_to_those_who_started_the_agent() -> None:
    world = make_world({"deny": "tool", "names": ["look"], "to": ["role:trainee"]})
    world.fake_model("fast", calls(look={"what": "a"}), "Done.", calls(look={"what": "a"}), "Done.")

    start(world, "helper", "bob", ("trainee",), prompt="hi")
    start(world, "helper", "ann", ("manager",), prompt="hi")

    told = [call.messages[-1].text for call in world.model_calls("fast")[1::2]]
    assert ["not permitted" in text for text in told] == [True, False]


def test_a_model_is_told_that_a_child_run_is_not_permitted() -> None:
    world = make_world({"deny": "workflow", "names": ["pay"], "to": ["workflow:helper"]})
    world.fake_model("fast", calls(pay={"cents": 5}), "Sorry.")

    assert start(world, "helper", prompt="pay")["output"] == "Sorry."
    assert "The workflow pay is not permitted" in world.model_calls("fast")[1].messages[-1].text
