"""A real small model over both wires. What it says is not judged: only shape, streams, usage and schemas."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from tests.agents.model_kit import Asked, system, user
from tests.agents.scripted_server import ScriptedServer
from tests.agents.small_model import serving_small_model
from tests.steps.http_kit import go
from weft.authoring.models import read_alias
from weft.ports.models import ModelMessage

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def weft_llm() -> Iterator[str]:
    """The address of a real model."""
    with serving_small_model() as address:
        yield address


@contextlib.asynccontextmanager
async def real(address: str, **options: Any) -> AsyncIterator[Asked]:
    asked = Asked(ScriptedServer([]), read_alias("small", address, {"timeout": "5m", **options}))  # type: ignore[typeddict-item]
    try:
        yield asked
    finally:
        await asked.ports.close()


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_stream_is_the_answer_and_tokens_are_counted(weft_llm: str, api: str) -> None:
    async def scenario() -> None:
        async with real(weft_llm, api=api) as asked:
            reply = await asked.complete(system("You are brief."), user("Name a colour."), output_tokens=24)

            assert reply.message.text
            assert "".join(chunk.text for chunk in asked.chunks if chunk.kind == "text") == reply.message.text
            assert reply.finish in ("stop", "length")
            assert not reply.usage.is_estimate
            assert 0 < reply.usage.output <= 24
            assert reply.usage.input > 0

    go(scenario())


def test_an_answer_follows_its_schema(weft_llm: str) -> None:
    class Score(msgspec.Struct, forbid_unknown_fields=True):
        score: int
        reason: str

    schema = {
        "type": "object",
        "properties": {"score": {"type": "integer"}, "reason": {"type": "string", "maxLength": 40}},
        "required": ["score", "reason"],
        "additionalProperties": False,
    }

    async def scenario() -> None:
        async with real(weft_llm, options={"temperature": 0}) as asked:
            reply = await asked.complete(
                user("Score the soup from 1 to 9, as JSON."), output_schema=schema, output_tokens=120
            )
            assert reply.finish == "stop"
            msgspec.json.decode(reply.message.text, type=Score)

    go(scenario())


def test_a_conversation_of_two_turns_goes_through_the_step(weft_llm: str) -> None:
    def written(message: ModelMessage) -> list[Any]:
        found: list[Any] = msgspec.to_builtins([message])
        return found

    async def scenario() -> None:
        async with real(weft_llm, output=16) as asked:
            first = await asked.perform(add=written(user("My name is Ann.")))
            second = await asked.perform(head=first["head"], add=written(user("What is my name?")))

            assert second["usage"]["input"] > first["usage"]["input"]
            conversation = await asked.conversations.read(second["head"])
            assert [message.role for message in conversation.messages] == ["user", "assistant"] * 2

    go(scenario())


def test_a_conversation_that_is_too_long_is_told_as_that(weft_llm: str) -> None:
    async def scenario() -> None:
        async with real(weft_llm) as asked:
            with pytest.raises(Exception, match="context") as failed:
                await asked.complete(user("word " * 6_000))
            assert getattr(failed.value, "code", "") == "model.context"

    go(scenario())
