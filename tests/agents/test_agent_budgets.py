"""Budgets of agents: no call without cover, and what happens when the budget is used up."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import weft
from tests import scale
from weft.ports.models import CallPart, ModelMessage, ModelReply, ModelUsage, Part, TextPart
from weft.testing import World, crash_everywhere

app = weft.App()
app.model("fast", url="http://127.0.0.1:9/v1", output=1_000, prices=weft.Prices("1", "10"))
app.model("free", url="http://127.0.0.1:9/v1", output=1_000)


@app.step(effect="pure")
async def look(n: int) -> str:
    return "found"


def said(*parts: Part, tokens: int = 1_000) -> ModelReply:
    message = ModelMessage(role="assistant", parts=parts)
    usage = ModelUsage(input=tokens, output=100)
    return ModelReply(message=message, finish="calls" if message.calls else "stop", usage=usage, model="m")


def look_up(n: int) -> ModelReply:
    return said(CallPart(id=f"c{n}", name="look", arguments=f'{{"n":{n}}}'))


DONE = said(TextPart("Done."))


def agent(name: str, **options: Any) -> weft.Agent[str]:
    return app.agent(name, model="fast", tools=[look], **options)


roomy = agent("roomy", budget=weft.Budget(money="1 USD", tokens=100_000, calls=10, tools=10))
few_calls = agent("few_calls", budget=weft.Budget(calls=2))
one_more = agent("one_more", budget=weft.Budget(tokens=5_000), on_exhausted="answer")
asks = agent("asks", budget=weft.Budget(calls=1, of=["ann"]), on_exhausted="ask")
asks_for_tools = agent("asks_for_tools", budget=weft.Budget(tools=1, of=["ann"]), on_exhausted="ask")
few_tools = agent("few_tools", budget=weft.Budget(per_tool={"look": 1}), on_exhausted="answer")


def test_what_was_spent_is_what_the_provider_reported() -> None:
    world = World(app)
    world.fake_model("fast", look_up(1), DONE)
    run = world.start(roomy("go"))

    reply = run.result()

    assert reply.usage.money == Decimal("0.004")  # 2,000 in and 200 out
    used = world.perform(lambda: app.get(run.id).usage())
    spent = {line.unit: line.spent for line in used.units}
    assert spent["tokens"] == 2_200
    assert spent["money:USD"] == 4_000
    assert (spent["calls"], spent["tools"]) == (2, 1)


def test_a_call_that_is_not_covered_is_not_made() -> None:
    world = World(app)
    world.fake_model("fast", look_up(1), look_up(2), DONE)
    with pytest.raises(weft.RunFailed) as failed:
        world.run(few_calls("go"))
    assert failed.value.failure.code == "budget.exceeded"
    assert len(world.model_calls("fast")) == 2


def test_a_result_is_not_taken_for_longer_because_the_provider_counts_the_tools_too() -> None:
    """The first count of a short prompt has many more tokens than the prompt has characters."""

    @app.step(effect="pure")
    async def read_page(number: int) -> str:
        return "words " * 400

    reader = app.agent("reader", model="fast", tools=[read_page], budget=weft.Budget(tokens=4_000))
    world = World(app)
    world.fake_model("fast", said(CallPart(id="c", name="read_page", arguments='{"number":1}'), tokens=100), DONE)

    assert world.run(reader("go")).output == "Done."


def test_without_cover_for_a_last_answer_the_run_fails() -> None:
    world = World(app)
    world.fake_model("fast", *[look_up(n) for n in range(9)])
    with pytest.raises(weft.RunFailed) as failed:
        world.run(one_more("go"))
    assert failed.value.failure.code == "budget.exceeded"
    assert len(world.model_calls("fast")) < 5


def test_people_may_give_it_more() -> None:
    world = World(app)
    world.fake_model("fast", look_up(1), DONE)
    run = world.start(asks("go"))
    assert [wait.location for wait in run.waiting_for()] == ["turn/~1/budget"]
    run.answer("turn/~1/budget", form={"amount": 1}, by="ann")

    assert run.result().output == "Done."
    raised = [event.data for event in run.events if event.kind == "budget_raised"]
    assert [(one["added"], one["by"]) for one in raised] == [({"calls": 1}, "ann")]


def test_a_no_ends_the_run() -> None:
    world = World(app)
    world.fake_model("fast", look_up(1), DONE)
    run = world.start(asks("go"))
    run.answer("turn/~1/budget", approved=False, by="ann")
    with pytest.raises(weft.RunFailed) as failed:
        run.result()
    assert failed.value.failure.code == "budget.exceeded"


def test_people_may_give_it_more_for_a_tool() -> None:
    world = World(app)
    world.fake_model("fast", look_up(1), look_up(2), DONE)
    run = world.start(asks_for_tools("go"))
    assert [wait.location for wait in run.waiting_for()] == ["turn/~1/tools/0/budget"]
    run.answer("turn/~1/tools/0/budget", form={"amount": 1}, by="ann")

    assert run.result().output == "Done."
    assert len(world.calls(look)) == 2


def test_without_more_for_a_tool_the_model_is_told() -> None:
    world = World(app)
    world.fake_model("fast", look_up(1), look_up(2), DONE)
    run = world.start(asks_for_tools("go"))
    run.answer("turn/~1/tools/0/budget", approved=False, by="ann")

    assert run.result().output == "Done."
    assert len(world.calls(look)) == 1
    assert "was not called" in world.model_calls("fast")[2].messages[-1].text


def test_a_tool_without_budget_is_told() -> None:
    world = World(app)
    world.fake_model("fast", look_up(1), look_up(2), DONE)
    assert world.run(few_tools("go")).output == "Done."
    assert len(world.calls(look)) == 1
    assert "was not called" in world.model_calls("fast")[2].messages[-1].text


@app.workflow
async def count(n: int) -> int:
    """Count."""
    return n


def call(name: str, arguments: str = "{}") -> ModelReply:
    return said(CallPart(id="c", name=name, arguments=arguments))


UNTASKED = {
    "count": (count, call("count", '{"n":1}')),
    "roomy": (roomy, call("roomy", '{"prompt":"help"}')),
    "ask_person": (weft.person(of=["ann"]), call("ask_person", '{"question":"Go?"}')),
}


def limited(name: str) -> weft.Agent[str]:
    budget = weft.Budget(tools=5, per_tool={name: 1})
    tools = [UNTASKED[name][0]]
    return app.agent(
        f"limited_{name}", model="fast", tools=tools, approve="never", budget=budget, on_exhausted="answer"
    )


LIMITED = {name: limited(name) for name in UNTASKED}


def play_limited(world: World, name: str) -> Any:
    """Let an agent call a child run, an agent or a person twice, though its budget covers one call."""
    wanted = UNTASKED[name][1]
    helped = [DONE] if name == "roomy" else []
    world.fake_model("fast", wanted, *helped, wanted, DONE)
    run = world.start(LIMITED[name]("go"))
    if any(wait.kind == "ask" for wait in run.waiting_for()):
        run.answer("turn/~0/tools/0/ask_person", form={"answer": "go"}, by="ann")
    run.result()
    return run


@pytest.mark.parametrize("name", UNTASKED)
def test_a_child_run_or_a_person_as_a_tool_is_covered_like_any_other(name: str) -> None:
    world = World(app)

    run = play_limited(world, name)

    kinds = [event.kind for event in run.events]
    assert kinds.count("child_started") + kinds.count("ask_opened") == 1
    assert f"{name} was not called" in world.model_calls("fast")[-1].messages[-1].text
    used = world.perform(lambda: app.get(run.id).usage())
    spent = {line.unit: (line.spent, line.reserved) for line in used.units}
    assert spent["tools"] == (1, 0)
    assert spent[f"tool:{name}"] == (1, 0)


def test_without_cover_a_run_ends_before_a_child_is_started() -> None:
    strict = app.agent("strict", model="fast", tools=[count], approve="never", budget=weft.Budget(tools=0))
    world = World(app)
    world.fake_model("fast", UNTASKED["count"][1])
    run = world.start(strict("go"))

    with pytest.raises(weft.RunFailed) as failed:
        run.result()

    assert failed.value.failure.code == "budget.exceeded"
    assert "child_started" not in [event.kind for event in run.events]


@pytest.mark.parametrize("name", scale.first(1, UNTASKED))
def test_the_cover_of_a_child_run_holds_whatever_crashes(name: str) -> None:
    def scenario(world: World) -> None:
        run = play_limited(world, name)
        kinds = [event.kind for event in run.events]
        begun = kinds.count("child_started") + kinds.count("ask_opened")
        used = world.perform(lambda: app.get(run.id).usage())
        spent = {line.unit: line for line in used.units}[f"tool:{name}"]
        assert begun <= spent.spent <= 1
        assert spent.reserved == 0

    assert crash_everywhere(app, scenario) > 10


def test_money_over_a_model_without_prices_is_refused() -> None:
    free = app.agent("free_agent", model="free", budget=weft.Budget(money="1 USD"))
    with pytest.raises(weft.UsageError) as refused:
        free("go")
    assert refused.value.code == "budget.no_price"


def scenario(world: World) -> None:
    world.fake_model("fast", look_up(1), look_up(2), DONE)
    run = world.start(few_calls("go"))
    with pytest.raises(weft.RunFailed):
        run.result()
    # A call that died with its process is paid for, and never made beyond the budget.
    assert len({call.key for call in world.model_calls("fast")}) <= 2


def test_the_budget_holds_whatever_crashes() -> None:
    assert crash_everywhere(app, scenario) > 10


def test_most_of_a_budget_is_noted_once_and_a_person_raises_it() -> None:
    world = World(app)
    world.fake_model("fast", look_up(1), look_up(2), DONE)
    run = world.start(few_calls("go"))
    with pytest.raises(weft.RunFailed, match="budget"):
        run.result()
    assert [event.data["unit"] for event in run.events if event.kind == "budget_warned"] == ["calls"]

    async def raise_and_retry() -> None:
        await app.get(run.id).raise_budget(weft.Budget(calls=8), reason="go on", by="ann")
        await app.get(run.id).retry()

    world.perform(raise_and_retry)

    assert run.result().output == "Done."
    (raised,) = [event.data for event in run.events if event.kind == "budget_raised"]
    assert (raised["added"], raised["by"], raised["reason"]) == ({"calls": 8}, "ann", "go on")
    assert [event.kind for event in run.events].count("budget_warned") == 1
