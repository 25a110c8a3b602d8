"""Models with schemas but without tools: the tools are in their system text, and answers name one or are final."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import weft
from tests.agents.model_kit import asking, system, user
from tests.agents.scripted_server import Say, text, whole
from tests.steps.http_kit import go
from weft.runtime.schema_check import schema_findings
from weft.testing import World, calls


class Place(msgspec.Struct):
    street: str


def small(*supports: str, output: Any = str, **options: Any) -> tuple[weft.App, weft.Agent[Any]]:
    app = weft.App()
    app.model("small", url="http://127.0.0.1:9/v1", supports=list(supports), **options)
    app.model("large", url="http://127.0.0.1:9/v1")

    @app.step(effect="pure")
    async def find(order: str, place: Place | None = None) -> str:
        """Find an order."""
        return f"{order} was delivered"

    return app, app.agent("clerk", model="small", system="You are a clerk.", tools=[find], output=output)


def call_find(order: str = "o-1") -> dict[str, Any]:
    return {"tool": "find", "arguments": {"order": order}}


def test_a_model_without_tools_calls_them_in_words() -> None:
    app, clerk = small("schema")
    world = World(app)
    world.fake_model("small", call_find(), {"tool": "final", "answer": "It was delivered."})

    reply = world.run(clerk("Where is o-1?"))

    assert reply.output == "It was delivered."
    assert [(call.name, call.ok) for call in reply.tool_calls] == [("find", True)]
    first, second = world.model_calls("small")
    assert first.tools == ()
    assert first.messages[0].text.startswith("You are a clerk.\nYou have these tools:\n- find: Find an order.")
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
    assert second.messages[2].text == '{"tool": "find", "arguments": {"order":"o-1"}}'
    assert second.messages[3].text == 'The result of find: "o-1 was delivered"'


@pytest.mark.parametrize(
    ("answer", "fits"),
    [
        (call_find(), True),
        ({"tool": "find", "arguments": {"order": "o-1", "place": {"street": "x"}}}, True),
        ({"tool": "final", "answer": {"state": "delivered"}}, True),
        ({"tool": "find", "arguments": {"order": 1}}, False),
        ({"tool": "find", "arguments": {"order": "o-1", "place": {"street": 1}}}, False),
        ({"tool": "final", "answer": {"state": 1}}, False),
        ({"tool": "steal", "arguments": {}}, False),
    ],
)
def test_the_answer_is_constrained_to_the_tools_and_the_output(answer: dict[str, Any], fits: bool) -> None:
    class State(msgspec.Struct):
        state: str

    app, clerk = small("schema", output=State)
    world = World(app)
    world.fake_model("small", {"tool": "final", "answer": {"state": "delivered"}})

    assert world.run(clerk("Where is o-1?")).output.state == "delivered"
    schema = world.model_calls("small")[0].output_schema
    assert schema is not None
    assert (schema_findings(dict(schema), msgspec.json.encode(answer)) == []) is fits


@pytest.mark.parametrize("supports", [["schema"], ["schema", "stream"], []])
def test_the_output_is_checked_and_repaired_as_that_of_any_model(supports: list[str]) -> None:
    app, clerk = small(*supports, output=list[int])
    world = World(app)
    world.fake_model("small", call_find(), *(_final(supports, value) for value in ("x", [1, 2])))

    assert world.run(clerk("Count.")).output == [1, 2]


def _final(supports: list[str], value: Any) -> dict[str, Any]:
    return {"tool": "final", "answer": value if supports else {"value": value}}


@pytest.mark.parametrize(
    "answer",
    [
        {"tool": "steal", "arguments": {}},
        {"tool": "find"},
        {"tool": "find", "arguments": [1]},
        {"tool": "find", "arguments": {"order": 5}},
    ],
)
def test_calls_that_are_not_possible_are_told_back(answer: dict[str, Any]) -> None:
    app, clerk = small("schema")
    world = World(app)
    world.fake_model("small", answer, {"tool": "final", "answer": "I give up."})

    assert world.run(clerk("Where is o-1?")).output == "I give up."
    assert '"error"' in world.model_calls("small")[1].messages[-1].text


@pytest.mark.parametrize("said", ["I do not speak JSON.", '{"tool": 7}', "[1]", '"final"', "{" * 5_000])
def test_other_text_is_an_answer_in_words(said: str) -> None:
    app, clerk = small("schema")
    world = World(app)
    world.fake_model("small", said)

    assert world.run(clerk("Where is o-1?")).output == said


def test_another_model_goes_on_with_the_same_conversation() -> None:
    app, clerk = small("schema", fallback=["large"], retries=weft.Retry(1))
    world = World(app)
    world.fake_model("large", calls(find={"order": "o-2"}), "Both were delivered.")
    world.fake_model("small", call_find(), *[weft.ModelFailed("gone", code="model.unavailable")] * 2)

    assert world.run(clerk("Where is o-1?")).output == "Both were delivered."
    asked = world.model_calls("large")[0]
    assert [message.role for message in asked.messages] == ["system", "user", "assistant", "tool"]
    assert asked.messages[0].text == "You are a clerk."


def test_the_last_answer_of_a_model_without_tools_has_none() -> None:
    app, _ = small("schema")
    agent = app.agent("once", model="small", tools=["find"], turns=1, on_exhausted="answer")
    world = World(app)
    world.fake_model("small", call_find(), "I found nothing more.")

    reply = world.run(agent("Where is o-1?"))
    assert (reply.output, reply.stopped) == ("I found nothing more.", "turns")
    assert world.model_calls("small")[1].output_schema is None


def over_the_wire(answer: Say, check: Callable[[dict[str, Any], dict[str, Any]], None], **options: Any) -> None:
    async def scenario() -> None:
        async with asking(answer, **options) as asked:
            tool = {"name": "find", "description": "Find.", "parameters": {"type": "object", "properties": {}}}
            messages = msgspec.to_builtins([system("Be brief."), user("Where?")])
            check(await asked.perform(add=messages, tools=[tool]), asked.sent)

    go(scenario())


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_no_tools_go_over_the_wire(api: str) -> None:
    if api == "responses":
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": '{"tool":"find"}'}]}
        answer = whole({"model": "m", "status": "completed", "output": [said], "usage": {}})
    else:
        answer = text('{"tool":"find"}')

    def check(given: dict[str, Any], sent: dict[str, Any]) -> None:
        assert "tools" not in sent
        assert '"final"' in msgspec.json.encode(sent.get("response_format") or sent.get("text")).decode()
        assert [(call["name"], call["arguments"]) for call in given["calls"]] == [("find", "{}")]
        assert given["finish"] == "calls"

    over_the_wire(answer, check, api=api, supports=["schema"])
