"""Scripted models in a world: one reply per attempt, the same after a crash, and never a real one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import weft
from tests.agents.model_workflow import ask
from weft.core.ids import RunId
from weft.ports.models import ModelRequest
from weft.testing import World, calls, crash_everywhere

app = weft.App()
app.model("fast", url="http://127.0.0.1:9/v1", retries=weft.Retry(3, "fixed", "1s"))
app.model("slow", url="http://127.0.0.1:9/v1")


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


@app.workflow
async def talk(ctx: weft.Context, lines: list[str]) -> list[str]:
    found, head = [], ""
    for turn, line in enumerate(lines):
        alias = app.registered.models.aliases.get("fast")
        try:
            reply = await ask(alias, head=head, add=[said(line)], turn=turn, stream="agent")
        except weft.StepFailed as failed:
            if failed.failure.code.startswith("model."):
                return [failed.failure.code]
            raise
        found.append(reply["text"] or reply["calls"][0]["name"])
        head = reply["head"]
    return found


def test_each_call_gets_the_next_reply_and_the_whole_conversation() -> None:
    world = World(app)
    world.fake_model("fast", "Hello.", calls(find={"id": 1}), {"score": 2})

    assert world.run(talk(["a", "b", "c"])) == ["Hello.", "find", '{"score":2}']

    asked = world.model_calls("fast")
    assert [len(call.messages) for call in asked] == [1, 3, 5]
    assert [call.turn for call in asked] == [0, 1, 2]
    assert asked[2].messages[1].text == "Hello."
    assert len({call.key for call in asked}) == 3


def test_a_reply_may_be_an_exception_and_the_next_attempt_gets_the_next_one() -> None:
    world = World(app)
    world.fake_model("fast", weft.ModelFailed("busy", is_transient=True), "Hello.")

    assert world.run(talk(["a"])) == ["Hello."]
    assert [call.attempt for call in world.model_calls("fast")] == [1, 2]


def test_a_model_that_stays_unavailable_fails_with_its_code() -> None:
    world = World(app)
    world.fake_model("fast", *[weft.ModelFailed("busy", is_transient=True)] * 3)

    assert world.run(talk(["a"])) == ["model.unavailable"]
    assert len(world.model_calls("fast")) == 3


def test_a_rejected_call_is_not_repeated() -> None:
    world = World(app)
    world.fake_model("fast", weft.ModelFailed("no such model", code="model.rejected"), "never")

    assert world.run(talk(["a"])) == ["model.rejected"]
    assert len(world.model_calls("fast")) == 1


def test_a_reply_may_be_a_function_of_the_request() -> None:
    async def shout(request: ModelRequest) -> str:
        return request.messages[-1].text.upper()

    world = World(app)
    world.fake_model("fast", shout)

    assert world.run(talk(["hey"])) == ["HEY"]


def test_a_call_beyond_the_script_fails_with_the_conversation() -> None:
    world = World(app)
    world.fake_model("fast", "Hello.")

    with pytest.raises(weft.RunFailed, match="1 reply in its script") as failed:
        world.run(talk(["first line", "second line"]))
    assert "user: second line" in failed.value.failure.message


def test_a_model_without_a_script_is_never_called_for_real() -> None:
    with pytest.raises(weft.RunFailed, match="no real model is called"):
        World(app).run(talk(["a"]))


def test_a_script_for_a_model_that_does_not_exist_is_refused() -> None:
    with pytest.raises(weft.UsageError, match='Did you mean "fast"'):
        World(app).fake_model("fats", "Hello.")


def test_a_recorded_answer_is_never_asked_for_again_whatever_crashes() -> None:
    def scenario(world: World) -> None:
        world.fake_model("fast", "one", "two")
        assert world.run(talk(["a", "b"])) == ["one", "two"]
        asked = world.model_calls("fast")
        assert len(asked) <= 3
        assert len({call.key for call in asked}) == 2
        assert asked[-1].messages[1].text == "one"

    assert crash_everywhere(app, scenario) > 4


def test_the_answer_is_streamed_as_it_comes() -> None:
    world = World(app)
    world.fake_model("fast", "x" * 3_000)
    run = world.start(talk(["a"]))
    run.result()

    async def read() -> list[Any]:
        store = app.service.store
        row = await store.directory.find(RunId(run.id))
        assert row is not None
        return [msgspec.json.decode(one.body) for one in await store.streams.read(row.uid, "agent", after=0, limit=100)]

    *chunks, usage = world.perform(read)
    assert usage["kind"] == "usage"
    assert "".join(chunk["text"] for chunk in chunks) == "x" * 3_000
    assert {(chunk["run"], chunk["turn"], chunk["kind"]) for chunk in chunks} == {(run.id, 0, "text")}
