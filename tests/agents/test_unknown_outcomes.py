"""Tools whose child runs fail with a step that may have been performed: the model must not repeat them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import weft
from tests.agents.test_conversation_view import view
from tests.agents.test_loop import told
from weft.core.commands import RequeueLetter
from weft.core.ids import RunId
from weft.observe.dead_letters import dead_letters_in
from weft.testing import World, calls

UNKNOWN = "step.outcome_unknown"


class Bank:
    """An app whose step ``pay`` acts and then hangs, and workflows that call it."""

    def __init__(self) -> None:
        self.app = app = weft.App()
        self.paid: list[int] = []
        app.model("fast", url="http://127.0.0.1:9/v1")

        @app.step(effect="irreversible", timeout="1s")
        async def pay(cents: int) -> str:
            self.paid.append(cents)
            await asyncio.sleep(60)
            return "paid"

        @app.step
        async def refuse() -> str:
            raise weft.Critical("not today")

        @app.workflow
        async def order(ctx: weft.Context, cents: int) -> str:
            return await pay(cents)

        @app.workflow
        async def outer(ctx: weft.Context, cents: int) -> str:
            return await order(cents)

        @app.workflow
        async def beside(ctx: weft.Context, cents: int) -> str:
            paid = await ctx.join("both", {"no": refuse(), "pay": pay(cents)})
            return str(paid)

        @app.workflow
        async def reworded(ctx: weft.Context, cents: int) -> str:
            try:
                return await pay(cents)
            except weft.StepFailed as error:
                raise ValueError("it did not work") from error

        app.graph({"name": "drawn", "input": {"cents": "integer"}, "nodes": {
            "pay": {"step": "pay", "with": {"cents": "${input.cents}"}},
        }})  # fmt: skip
        clerk = app.agent("clerk", model="fast", prompt="Pay ${cents}.", tools=[weft.tool(pay, approve="never")])
        self.tools: dict[str, Any] = {
            "order": order, "outer": outer, "beside": beside, "reworded": reworded, "drawn": "drawn", "clerk": clerk,
        }  # fmt: skip

    def boss(self, tool: str, **rules: Any) -> weft.Agent[str]:
        offered = weft.tool(self.tools[tool], approve="never", **rules)
        return self.app.agent("boss", model="fast", tools=[offered])


def script(tool: str, *last: str) -> list[object]:
    """Return replies that call a tool once, and then once more unless they answer."""
    inner = [calls(pay={"cents": 5})] if tool == "clerk" else []
    again: list[object] = [] if last else [calls(**{tool: {"cents": 5}}), *inner, "Done."]
    return [calls(**{tool: {"cents": 5}}), *inner, *last, *again]


@pytest.mark.parametrize("tool", ["order", "outer", "beside", "reworded", "drawn", "clerk"])
def test_a_run_ends_if_something_below_it_may_have_been_performed(tool: str) -> None:
    bank = Bank()
    world = World(bank.app)
    world.fake_model("fast", *script(tool))

    with pytest.raises(weft.RunFailed) as failed:
        world.run(bank.boss(tool)("Pay."))
    assert failed.value.failure.code == UNKNOWN
    assert failed.value.failure.in_doubt
    assert bank.paid == [5]


def test_the_model_is_told_not_to_repeat_it_if_the_program_says_so() -> None:
    bank = Bank()
    world = World(bank.app)
    world.fake_model("fast", *script("outer", "I shall ask them."))

    assert world.run(bank.boss("outer", on_unknown="tell")("Pay.")).output == "I shall ask them."
    assert "may have happened; do not repeat" in told(world, 1)
    assert bank.paid == [5]


@pytest.mark.parametrize("failing", [ValueError, weft.Critical])
def test_a_child_run_that_failed_otherwise_is_told_as_failed(failing: Callable[[str], Exception]) -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.workflow
    async def order(ctx: weft.Context) -> str:
        raise failing("sold out")

    boss = app.agent("boss", model="fast", tools=[weft.tool(order, approve="never")])
    world = World(app)
    world.fake_model("fast", calls(order={}), "Sorry.")

    assert world.run(boss("Order.")).output == "Sorry."
    assert "sold out" in told(world, 1)


@pytest.mark.parametrize("tool", ["order", "beside", "clerk", "drawn"])
def test_a_retry_does_not_repeat_it_unless_somebody_says_so(tool: str) -> None:
    bank = Bank()
    world = World(bank.app)
    world.fake_model("fast", *script(tool), *script(tool))
    run = world.start(bank.boss(tool)("Pay."))
    place = f"turn/~0/tools/0/{tool}"
    with pytest.raises(weft.RunFailed):
        run.result()

    with pytest.raises(weft.Refused, match="must not be performed twice") as refused:
        world.perform(lambda: world.app.get(run.id).retry())
    assert f"weft retry {run.id} --approve {place}" in str(refused.value)
    assert bank.paid == [5]
    world.perform(lambda: world.app.get(run.id).retry(approved=[place]))
    with pytest.raises(weft.RunFailed):
        run.result()
    assert bank.paid == [5, 5]


def test_a_result_that_people_found_out_is_told_to_the_model() -> None:
    bank = Bank()
    world = World(bank.app)
    world.fake_model("fast", *script("order", "Paid."))
    run = world.start(bank.boss("order")("Pay."))
    with pytest.raises(weft.RunFailed):
        run.result()

    world.perform(lambda: world.app.get(run.id).set("turn/~0/tools/0/order", output="it was paid", by="fin"))
    world.perform(lambda: world.app.get(run.id).retry())

    assert run.result().output == "Paid."
    assert "it was paid" in told(world, 1)
    assert bank.paid == [5]


def test_a_result_that_people_found_out_about_an_agent_is_told_to_the_model() -> None:
    bank = Bank()
    world = World(bank.app)
    world.fake_model("fast", calls(clerk={"cents": 5}), calls(pay={"cents": 5}), "Paid.")
    run = world.start(bank.boss("clerk")("Pay."))
    with pytest.raises(weft.RunFailed):
        run.result()

    world.perform(lambda: world.app.get(run.id).set("turn/~0/tools/0/clerk", output="it was paid", by="fin"))
    world.perform(lambda: world.app.get(run.id).retry())

    assert run.result().output == "Paid."
    assert "it was paid" in told(world, 2)
    assert bank.paid == [5]


@pytest.mark.parametrize("answer", ["hello", {"text": "hello"}])
def test_what_people_set_in_place_of_an_answer_is_shown_and_told_if_it_is_none(answer: object) -> None:
    bank = Bank()
    world = World(bank.app)
    world.fake_model("fast", *script("order", "Paid."))
    run = world.start(bank.boss("order")("Pay."))
    with pytest.raises(weft.RunFailed):
        run.result()

    world.perform(lambda: world.app.get(run.id).set("turn/~0/model", output=answer, by="fin"))
    (turn,) = view(world, bank.app, run.id).turns
    world.perform(lambda: world.app.get(run.id).retry())

    assert "hello" in turn.text
    with pytest.raises(weft.RunFailed, match="in place of the answer of a model is none"):
        run.result()


@pytest.mark.parametrize(
    "work", [{"workflow": "order", "with": {"cents": 5}}, {"agent": "clerk", "with": {"cents": 5}}]
)
def test_a_retry_of_a_graph_does_not_repeat_the_child_run_of_a_node(work: dict[str, Any]) -> None:
    bank = Bank()
    bank.app.graph({"name": "shop", "nodes": {"pay": work}})
    world = World(bank.app)
    world.fake_model("fast", *[calls(pay={"cents": 5})] * 2)
    run = world.start("shop", {}, id="shop-1")
    with pytest.raises(weft.RunFailed):
        run.result()

    with pytest.raises(weft.Refused, match="weft retry shop-1 --approve pay"):
        world.perform(lambda: world.app.get(run.id).retry())
    row = world.perform(lambda: world.app.service.row(RunId(run.id)))
    (letter,) = world.perform(lambda: dead_letters_in(world.app.service, row))
    with pytest.raises(weft.Refused, match="weft retry shop-1 --approve pay"):
        world.perform(lambda: world.app.service.tell(row.id, RequeueLetter(letter.token)))
    assert bank.paid == [5]
    world.perform(lambda: world.app.get(run.id).retry(approved=["pay"]))
    with pytest.raises(weft.RunFailed):
        run.result()
    assert bank.paid == [5, 5]


def test_a_retry_of_a_goal_does_not_repeat_the_child_run_of_a_step() -> None:
    app = weft.App()
    paid: list[int] = []

    @app.step(effect="irreversible", timeout="1s")
    async def pay(cents: int) -> str:
        paid.append(cents)
        await asyncio.sleep(60)
        return "paid"

    @app.workflow(gives="receipt")
    async def order(ctx: weft.Context, cents: int) -> str:
        return await pay(cents)

    world = World(app)
    run = world.start(app.goal("served", "order"), {"cents": 5}, id="served-1")
    with pytest.raises(weft.RunFailed):
        run.result()

    with pytest.raises(weft.Refused, match="weft retry served-1 --approve order"):
        world.perform(lambda: world.app.get(run.id).retry())
    assert paid == [5]
    world.perform(lambda: world.app.get(run.id).retry(approved=["order"]))
    with pytest.raises(weft.RunFailed):
        run.result()
    assert paid == [5, 5]
