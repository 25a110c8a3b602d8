"""The loop of an agent: turns, tools in parallel, approvals, outputs, repairs and ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

import weft
from tests.agents.shop import Shop
from weft.ports.models import ModelMessage, ModelReply, ModelUsage, TextPart
from weft.testing import World, calls

FIND = calls(find_order={"order_id": "o-1"})
REFUND = calls(refund={"order_id": "o-1", "cents": 4200})


def told(world: World, call: int, alias: str = "fast") -> str:
    """Return the last message that the model got in its n-th call."""
    return world.model_calls(alias)[call].messages[-1].text


def test_a_text_is_the_answer() -> None:
    shop = Shop(system="You help.")
    world = World(shop.app)
    world.fake_model("fast", "Hello.")

    reply = world.run(shop.support("Hi"))

    assert (reply.output, reply.stopped, reply.turns, reply.usage.calls) == ("Hello.", "done", 1, 1)
    messages = world.model_calls("fast")[0].messages
    assert [(message.role, message.text) for message in messages] == [("system", "You help."), ("user", "Hi")]


def test_a_step_is_performed_as_itself_and_its_result_is_told() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", FIND, "It was delivered.")

    reply = world.run(shop.support("Where is o-1?"))

    assert [call.args for call in world.calls(shop.find_order)] == [{"order_id": "o-1"}]
    assert told(world, 1) == '{"order_id":"o-1","state":"delivered"}'
    assert [(call.name, call.ok, call.turn) for call in reply.tool_calls] == [("find_order", True, 0)]
    assert reply.usage.tools == 1


def test_calls_of_one_answer_run_at_once_and_are_told_in_their_order() -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")
    began: list[int] = []

    @app.step(effect="pure")
    async def wait(seconds: int) -> int:
        began.append(seconds)
        await asyncio.sleep(seconds)
        return seconds

    agent = app.agent("waiter", model="fast", tools=[wait], width=2)
    world = World(app)
    world.fake_model(
        "fast", calls(("wait", {"seconds": 9}), ("wait", {"seconds": 2}), ("wait", {"seconds": 1})), "Done."
    )

    begin = world.now_ms
    world.run(agent("go"))

    assert began == [9, 2, 1]
    assert world.now_ms - begin == 9_000
    results = [message.text for message in world.model_calls("fast")[1].messages if message.role == "tool"]
    assert results == ["9", "2", "1"]


def test_an_irreversible_call_is_asked_for_with_its_arguments_and_their_digest() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", calls(refund={"order_id": "o-1", "cents": 4200}, says="I will refund."), "Done.")
    run = world.start(shop.support("money!"))

    asked = next(event for event in run.events if event.kind == "ask_opened").data
    assert asked["title"] == "support wants to call refund"
    assert asked["of"] == ["role:finance"]
    about = asked["about"]
    assert about["arguments"] == {"order_id": "o-1", "cents": 4200}
    assert (about["says"], about["effect"]) == ("I will refund.", "irreversible")
    assert world.calls(shop.refund) == []

    run.answer("turn/~0/tools/0/approve", by="fin")

    assert run.result().output == "Done."
    scheduled = [
        event.data for event in run.events if event.kind == "task_scheduled" and event.data["step"] == "refund"
    ]
    assert [task["digest"] for task in scheduled] == [about["digest"]]


def test_a_no_is_told_with_its_reason() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", REFUND, "I am sorry.")
    run = world.start(shop.support("money!"))
    run.answer("turn/~0/tools/0/approve", approved=False, reason="too late", by="fin")

    assert run.result().output == "I am sorry."
    assert "too late" in told(world, 1)
    assert world.calls(shop.refund) == []


def test_an_approval_that_nobody_answers_is_a_no() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", REFUND, "I am sorry.")

    assert world.run(shop.support("money!")).output == "I am sorry."
    assert "a person said no" in told(world, 1)


def test_an_approver_may_change_the_arguments_of_an_editable_tool() -> None:
    shop = Shop()
    tool = weft.tool(shop.refund, editable=True)
    agent = shop.app.agent("editable", model="fast", tools=[tool])
    world = World(shop.app)
    world.fake_model("fast", REFUND, "Done.")
    run = world.start(agent("money!"))
    run.answer("turn/~0/tools/0/approve", form={"order_id": "o-1", "cents": 100}, by="fin")

    run.result()

    assert [call.args for call in world.calls(shop.refund)] == [{"order_id": "o-1", "cents": 100}]
    assert "fin" in told(world, 1)
    assert '"cents":100' in told(world, 1)


def test_an_editable_call_that_is_approved_without_a_change_is_performed_as_it_is() -> None:
    shop = Shop()
    agent = shop.app.agent("editable", model="fast", tools=[weft.tool(shop.refund, editable=True)])
    world = World(shop.app)
    world.fake_model("fast", REFUND, "Done.")
    run = world.start(agent("money!"))
    run.answer("turn/~0/tools/0/approve", by="fin")

    run.result()

    assert len(world.calls(shop.refund)) == 1
    assert "changed_by" not in told(world, 1)


@pytest.mark.parametrize(
    ("approve", "cents", "asked"),
    [("always", 1, True), ("never", 9, False), ("args.cents > 5", 9, True), ("args.cents > 5", 1, False)],
)
def test_a_tool_says_when_it_is_asked_for(approve: str, cents: int, asked: bool) -> None:
    shop = Shop()
    agent = shop.app.agent("careful", model="fast", tools=[weft.tool(shop.refund, approve=approve)])
    world = World(shop.app)
    world.fake_model("fast", calls(refund={"order_id": "o-1", "cents": cents}), "Done.")
    run = world.start(agent("money!"))

    assert bool(run.waiting_for()) is asked


def test_bound_arguments_are_hidden_from_the_model_and_replace_what_it_gives() -> None:
    shop = Shop()
    tool = weft.tool(shop.refund, bind={"order_id": "${order}"}, approve="never")
    agent = shop.app.agent("bound", model="fast", prompt="Refund ${order} for ${customer}.", tools=[tool])
    world = World(shop.app)
    world.fake_model("fast", calls(refund={"cents": 1, "order_id": "o-evil"}), "Done.")

    world.run(agent(order="o-7", customer="Ann"))

    first = world.model_calls("fast")[0]
    assert first.messages[-1].text == "Refund o-7 for Ann."
    refund = next(tool for tool in first.tools if tool.name == "refund")
    assert list(refund.parameters["properties"]) == ["cents"]
    assert [call.args for call in world.calls(shop.refund)] == [{"cents": 1, "order_id": "o-7"}]


class Advice(TypedDict):
    airline: str
    price: float


@dataclass
class Score:
    score: int


@pytest.mark.parametrize(
    "answer",
    [
        '{"airline":"X","price":2.5}',
        'Here it is:\n```json\n{"airline":"X","price":2.5}\n```',
        'So: {"airline":"X","price":2.5} ok?',
    ],
)
def test_a_typed_answer_is_cut_out_of_the_text_around_it(answer: str) -> None:
    shop = Shop(output=Advice)
    world = World(shop.app)
    world.fake_model("fast", answer)

    assert world.run(shop.support("Advise.")).output == {"airline": "X", "price": 2.5}  # type: ignore[comparison-overlap]
    assert world.model_calls("fast")[0].output_schema is not None


def test_a_dataclass_comes_back_as_itself() -> None:
    shop = Shop(output=Score)
    world = World(shop.app)
    world.fake_model("fast", {"score": 3})

    assert world.run(shop.support("Rate.")).output == Score(3)  # type: ignore[comparison-overlap]


def test_a_misfit_is_told_and_repaired() -> None:
    shop = Shop(output=Score)
    world = World(shop.app)
    world.fake_model("fast", {"score": "high"}, "no idea", {"score": 3})

    assert world.run(shop.support("Rate.")).output == Score(3)  # type: ignore[comparison-overlap]
    assert "/score" in told(world, 1)
    assert "not JSON" in told(world, 2)


def test_too_many_misfits_end_the_run_with_the_last_text() -> None:
    shop = Shop(output=Score)
    world = World(shop.app)
    world.fake_model("fast", "a", "b", "c")

    with pytest.raises(weft.RunFailed) as failed:
        world.run(shop.support("Rate."))

    assert failed.value.failure.code == "agent.bad_output"
    assert failed.value.failure.data[1:] == (2, "c")


def test_a_model_without_schemas_answers_with_the_tool_final_output() -> None:
    app = weft.App()
    app.model("plain", url="http://127.0.0.1:9/v1", supports=["tools"])
    agent = app.agent("rater", model="plain", output=Score)
    world = World(app)
    world.fake_model("plain", calls(final_output={"score": "x"}), calls(final_output={"score": 4}))

    assert world.run(agent("Rate.")).output == Score(4)
    asked = world.model_calls("plain")
    assert asked[0].output_schema is None
    assert [tool.name for tool in asked[0].tools] == ["final_output"]
    assert [message.role for message in asked[1].messages] == ["user", "assistant", "tool", "user"]


def answered(text: str, finish: Any) -> ModelReply:
    message = ModelMessage(role="assistant", parts=(TextPart(text),) if text else ())
    return ModelReply(message=message, finish=finish, usage=ModelUsage(input=1, output=1), model="m")


def test_an_answer_that_was_cut_off_and_an_empty_one_are_repaired() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", answered("Once upon", "length"), answered("", "stop"), "Hi.")

    assert world.run(shop.support("Hello?")).output == "Hi."
    assert "cut off" in told(world, 1)
    assert "empty" in told(world, 2)


def test_a_refusal_ends_the_run() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", answered("I cannot help with that.", "refused"))

    with pytest.raises(weft.RunFailed) as failed:
        world.run(shop.support("Do evil."))
    assert failed.value.failure.code == "agent.refused"
    assert failed.value.failure.data[2] == "I cannot help with that."


def test_an_agent_that_uses_all_turns_fails() -> None:
    shop = Shop(turns=2)
    world = World(shop.app)
    world.fake_model("fast", FIND, calls(find_order={"order_id": "o-2"}))

    with pytest.raises(weft.RunFailed) as failed:
        world.run(shop.support("Search."))
    assert failed.value.failure.code == "agent.turns"


def test_it_may_answer_once_more_without_tools() -> None:
    shop = Shop(turns=1, on_exhausted="answer")
    world = World(shop.app)
    world.fake_model("fast", FIND, "It was delivered, I think.")

    reply = world.run(shop.support("Search."))

    assert (reply.output, reply.stopped) == ("It was delivered, I think.", "turns")
    assert world.model_calls("fast")[1].tools == ()


def test_people_may_give_it_more_turns() -> None:
    shop = Shop(turns=1, on_exhausted="ask")
    world = World(shop.app)
    world.fake_model("fast", FIND, calls(find_order={"order_id": "o-2"}), "Found.")
    run = world.start(shop.support("Search."))
    run.answer("turn/~0/more", form={"turns": 2}, by="fin")

    assert run.result().output == "Found."


def test_the_same_calls_with_the_same_results_end_as_stuck() -> None:
    shop = Shop(repeats=3)
    world = World(shop.app)
    world.fake_model("fast", *[FIND] * 9)

    with pytest.raises(weft.RunFailed) as failed:
        world.run(shop.support("Search."))

    assert failed.value.failure.code == "agent.stuck"
    assert len(world.model_calls("fast")) == 4
    assert "same calls" in told(world, 2)
    assert "same calls" not in told(world, 3)


def test_an_unavailable_model_is_replaced_by_its_fallback() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("local", "Hi, from here.")
    world.fake_model("fast", *[weft.ModelFailed("down", is_transient=True)] * 2)
    run = world.start(shop.support("Hello?"))

    assert run.result().output == "Hi, from here."
    assert [place for step, place in world._book.places.values() if step == "weft.model"] == [
        "turn/~0/model",
        "turn/~0/model/2",
    ]


def test_a_rejected_request_ends_the_run() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", weft.ModelFailed("bad key", code="model.rejected"))

    with pytest.raises(weft.RunFailed) as failed:
        world.run(shop.support("Hello?"))
    assert failed.value.failure.code == "model.rejected"


@pytest.mark.parametrize("end", ["fails", "is cancelled"])
def test_what_tools_did_is_undone_newest_first(end: str) -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")
    undone: list[str] = []

    @app.step(effect="idempotent")
    async def book(what: str) -> str:
        return what

    @book.undo
    async def unbook(what: str) -> None:
        undone.append(what)

    agent = app.agent("traveller", model="fast", tools=[book, weft.person(of=["ann"])], turns=3)
    asks = calls(ask_person={"question": "Which hotel?"})
    last = weft.ModelFailed("no", code="model.rejected") if end == "fails" else asks
    world = World(app)
    world.fake_model("fast", calls(book={"what": "flight"}), calls(book={"what": "hotel"}), last)
    run = world.start(agent("go"))
    if end == "is cancelled":
        assert [wait.location for wait in run.waiting_for()] == ["turn/~2/tools/0/ask_person"]
        world.perform(lambda: app.get(run.id).cancel("no"))
    with pytest.raises(weft.RunFailed if end == "fails" else weft.RunCancelled):
        run.result()

    assert undone == ["hotel", "flight"]
