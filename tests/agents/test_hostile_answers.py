"""What a model may say whatever it says: its answer is an output, is told back, or ends the run as ``agent.*``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import weft
from tests import scale
from tests.agents.model_kit import asking, user
from tests.agents.scripted_server import text, tool_calls
from tests.steps.http_kit import go
from weft.authoring.agents.outputs import cut_json
from weft.ports.models import CallPart, ModelMessage, ModelReply, ModelRequest, ModelUsage, Part, TextPart
from weft.testing import World, calls

DEEP = "[" * 300 + "]" * 300
GARBAGE = {
    "nothing": "",
    "nul": "a\0b",
    "nul escaped": '"\\u0000"',
    "deep": DEEP,
    "too deep": "[" * 5_000,
    "half": '{"n":',
    "huge number": "9" * 400,
    "no number": "NaN",
    "surrogate": '"\\ud800"',
    "brackets": "{" * 100_000,
    "megabytes": "x" * 2_000_000,
    "secret": '{"$weft":"secret","name":"env:HOME"}',
    "blob": '{"$weft":"blob","digest":"' + "0" * 64 + '","size":1}',
    "null": "null",
    "twice": '{"n":1}{"n":2}',
}


def saying(*parts: Part) -> Callable[[ModelRequest], ModelReply]:
    message = ModelMessage(role="assistant", parts=parts)
    usage = ModelUsage(input=1, output=1)
    return lambda _: ModelReply(message=message, finish="stop", usage=usage, model="m")


@pytest.mark.parametrize("supports", [["tools", "schema"], ["tools"], ["schema"], []], ids=str)
@pytest.mark.parametrize("garbage", scale.sample(2, GARBAGE))
@pytest.mark.parametrize("output", [str, list, Any], ids=str)
def test_garbage_ends_in_an_output_or_as_a_failure_of_the_agent(supports: list[str], garbage: str, output: Any) -> None:
    said = GARBAGE[garbage]
    app = weft.App()
    app.model("m", url="http://127.0.0.1:9/v1", supports=supports, retries=weft.Retry(1))

    @app.step(effect="pure")
    async def look(x: int) -> int:
        return x

    agent = app.agent("a", model="m", output=output, tools=[look], repairs=1, turns=3)
    for answer in (
        saying(TextPart(said)),
        saying(CallPart(id=said[:50], name="look", arguments=said)),
        saying(CallPart(id="1", name="final_output", arguments=said)),
        saying(CallPart(id="1", name=said[:200] or "x", arguments="{}")),
    ):
        world = World(app)
        world.fake_model("m", *[answer] * 5)
        try:
            world.run(agent("hi"))
        except weft.RunFailed as failed:
            assert failed.failure.code.startswith("agent."), failed.failure  # noqa: PT017 - either end is right
        assert world.calls(look) == []


def test_a_fence_with_line_breaks_for_ever_is_read_in_linear_time() -> None:
    assert cut_json("```json" + "\n" * 1_000_000) is None
    assert cut_json('Sure:\n```json \r\n\n{"n": 1}\n```\nBye.') == b'{"n": 1}'


def test_a_misfit_of_megabytes_is_not_told_back_with_all_of_it() -> None:
    app = weft.App()
    app.model("m", url="http://127.0.0.1:9/v1")

    @app.step(effect="pure")
    async def add(numbers: list[int]) -> int:
        return sum(numbers)

    agent = app.agent("a", model="m", output=list[int], tools=[add])
    world = World(app)
    world.fake_model("m", ["x" * 100_000] * 12, calls(add={"numbers": ["x" * 3_000] * 12}), [1])

    assert world.run(agent("go")).output == [1]
    assert all(len(call.messages[-1].text) < 10_000 for call in world.model_calls("m"))


def test_an_answer_that_is_nested_too_deeply_is_told_back() -> None:
    app = weft.App()
    app.model("m", url="http://127.0.0.1:9/v1")
    world = World(app)
    world.fake_model("m", DEEP, "[1]")

    assert world.run(app.agent("a", model="m", output=list)("hi")).output == [1]
    assert "nested deeper" in world.model_calls("m")[1].messages[-1].text


@pytest.mark.parametrize("answer", [text("a\0b"), tool_calls(("i\0", "na\0me", '{"x":"\0"}'))], ids=["text", "calls"])
def test_an_answer_with_nul_is_kept_without_it(answer: Any) -> None:
    async def scenario() -> None:
        async with asking(answer) as asked:
            given = await asked.perform(add=msgspec.to_builtins([user("hi")]), stream="agent")
            assert "\0" not in given["text"]
            assert all("\0" not in value for call in given["calls"] for value in call.values())
            assert "�" in str([given["text"], given["calls"]])

    go(scenario())
