"""A budget holds over the whole tree of runs: tools of agents that are called as tools count in all budgets above."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.testing import SimRun, World, calls, crash_everywhere

app = weft.App()
app.model("lead", url="http://127.0.0.1:9/v1")
app.model("clerk", url="http://127.0.0.1:9/v1")


@app.step(effect="idempotent")
async def refund(cents: int) -> str:
    return "refunded"


clerk = app.agent("clerk", model="clerk", tools=[refund], on_exhausted="answer")


@app.workflow
async def shift(cents: int) -> str:
    """Let a clerk work."""
    return (await clerk(f"Refund {cents}.")).output


@app.workflow
async def counter(ctx: weft.Context, cents: int) -> str:
    """Refund without a model."""
    return await refund(cents)


LIMIT = weft.Budget(per_tool={"refund": 2})
TOOLS = [weft.tool(one, effect="pure") for one in (clerk, shift, counter)]
lead = app.agent("lead", model="lead", tools=[*TOOLS, refund], budget=LIMIT, on_exhausted="answer")
BELOW: dict[str, dict[str, Any]] = {
    "clerk": {"clerk": {"prompt": "Refund it."}},
    "shift": {"shift": {"cents": 1}},
}


@app.workflow(budget=LIMIT)
async def office() -> str:
    return (await unlimited("go")).output


unlimited = app.agent("unlimited", model="lead", tools=TOOLS)


def used(world: World, run: SimRun[Any]) -> dict[str, tuple[int, int]]:
    usage = world.perform(lambda: app.get(run.id).usage())
    return {line.unit: (line.spent, line.reserved) for line in usage.units}


def play(world: World, below: str) -> SimRun[Any]:
    """Let a clerk refund three times and the agent above it once more, though the root covers two."""
    world.fake_model("clerk", *[calls(refund={"cents": cents}) for cents in (1, 2, 3)], "Two of three.")
    world.fake_model("lead", calls(**BELOW[below]), calls(refund={"cents": 4}), "Done.")
    return world.start(lead("go"))


@pytest.mark.parametrize("below", BELOW)
def test_tools_of_runs_below_count_in_the_budget_of_the_root(below: str) -> None:
    world = World(app)

    run = play(world, below)

    assert run.result().output == "Done."
    assert [call.args["cents"] for call in world.calls(refund)] == [1, 2]
    assert used(world, run)["tool:refund"] == (2, 0)
    assert "refund was not called: the budget of lead-1" in world.model_calls("clerk")[3].messages[-1].text
    assert "refund was not called" in world.model_calls("lead")[2].messages[-1].text


def test_tools_below_two_agents_count_in_the_budget_of_a_workflow() -> None:
    world = World(app)
    world.fake_model("clerk", *[calls(refund={"cents": cents}) for cents in (1, 2, 3)], "Two of three.")
    world.fake_model("lead", calls(shift={"cents": 1}), "Done.")
    run = world.start(office())

    assert run.result() == "Done."
    assert len(world.calls(refund)) == 2
    assert used(world, run)["tool:refund"] == (2, 0)


def test_agents_that_run_at_once_share_what_is_left() -> None:
    both = app.agent("both", model="lead", tools=TOOLS, budget=LIMIT)
    world = World(app)
    world.fake_model("clerk", *[calls(refund={"cents": 1})] * 3, *["Done."] * 3)
    at_once = calls(clerk={"prompt": "a"}, shift={"cents": 1})
    world.fake_model("lead", at_once, calls(clerk={"prompt": "b"}), "Done.")
    run = world.start(both("go"))

    assert run.result().output == "Done."
    assert len(world.calls(refund)) == 2
    assert used(world, run)["tool:refund"] == (2, 0)


def test_steps_that_code_calls_itself_are_no_calls_of_tools() -> None:
    world = World(app)
    world.fake_model("lead", *[calls(counter={"cents": cents}) for cents in (1, 2, 3)], "Done.")
    run = world.start(lead("go"))

    assert run.result().output == "Done."
    assert len(world.calls(refund)) == 3
    assert used(world, run)["tool:counter"] == (3, 0)
    assert used(world, run)["tool:refund"] == (0, 0)


@pytest.mark.proof
def test_the_budget_of_the_root_holds_whatever_crashes_below() -> None:
    def scenario(world: World) -> None:
        run = play(world, "clerk")
        run.result()
        spent, reserved = used(world, run)["tool:refund"]
        assert len({call.key for call in world.calls(refund)}) <= spent <= 2
        assert reserved == 0

    assert crash_everywhere(app, scenario) > 10
