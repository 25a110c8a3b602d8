"""The wire to POST /responses: what is sent, and what its answers are read as."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.model_kit import Asked, asking, system, user
from tests.agents.scripted_server import Say, http, refused, stream, whole
from tests.steps.http_kit import go
from weft.agents.models.failures import ModelFailed
from weft.ports.models import CallPart, ModelMessage, ModelReply, ModelUsage, OpaquePart, ResultPart, ToolDefinition

USAGE = {
    "input_tokens": 50,
    "output_tokens": 20,
    "input_tokens_details": {"cached_tokens": 40},
    "output_tokens_details": {"reasoning_tokens": 15},
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA=="}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find", "arguments": '{"id": 1}'}
FIND = ToolDefinition(name="find", description="Find it.", parameters={"type": "object"})


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def response(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "r-1", "status": "completed", "error": None, "output": list(items), "usage": USAGE, **more}


def ended(kind: str, *items: Any, **more: Any) -> Say:
    return stream({"type": f"response.{kind}", "response": response(*items, **more)}, done=False)


def reply_to(*answers: Say, **fields: Any) -> tuple[ModelReply, Asked]:
    async def scenario() -> tuple[ModelReply, Asked]:
        async with asking(*answers, api="responses") as asked:
            return await asked.complete(system("Be brief."), user("hello"), **fields), asked

    return go(scenario())


def test_a_streamed_text_arrives_in_pieces_and_as_a_whole() -> None:
    events = [
        {"type": "response.created", "response": {}},
        {"type": "response.output_text.delta", "delta": "Hel"},
        {"type": "response.output_text.delta", "delta": "lo"},
        {"type": "response.completed", "response": response(message("Hello"))},
    ]
    reply, asked = reply_to(stream(*events, done=False, hangs=True), tools=(FIND,))

    assert reply.message.text == "Hello"
    assert (reply.finish, reply.model) == ("stop", "r-1")
    assert reply.usage == ModelUsage(input=50, cached=40, output=20, reasoning=15)
    assert [chunk.text for chunk in asked.chunks] == ["Hel", "lo"]
    assert asked.server.requests[0].path == "/v1/responses"
    assert asked.sent["store"] is False
    assert asked.sent["tools"][0]["name"] == "find"
    assert [item["role"] for item in asked.sent["input"]] == ["system", "user"]


def test_reasoning_goes_back_unchanged_before_the_call_that_it_led_to() -> None:
    async def scenario() -> None:
        async with asking(
            ended("completed", REASONING, CALL), whole(response(message("ok"))), api="responses"
        ) as asked:
            reply = await asked.complete()
            assert reply.finish == "calls"
            assert reply.message.calls == (CallPart(id="call_1", name="find", arguments='{"id": 1}'),)
            result = ModelMessage(role="tool", parts=(ResultPart(id="call_1", name="find", content='"x"'),))

            await asked.complete(user("find"), reply.message, result)
            assert asked.sent["input"][1:] == [
                REASONING,
                {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": '{"id": 1}'},
                {"type": "function_call_output", "call_id": "call_1", "output": '"x"'},
            ]

            foreign = ModelMessage(role="assistant", parts=(OpaquePart(made_by="other", data=b"{}"),))
            await asked.complete(user("find"), foreign)
            assert len(asked.sent["input"]) == 1

    go(scenario())


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        (
            ended("incomplete", message("He"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "length",
        ),
        (ended("incomplete", status="incomplete", incomplete_details={"reason": "content_filter"}), "refused"),
        (whole(response({"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]})), "refused"),
        (whole(response(message("Hello"))), "stop"),
    ],
)
def test_the_way_an_answer_ends_is_told(answer: Say, finish: str) -> None:
    assert reply_to(answer)[0].finish == finish


def test_a_schema_is_asked_for_and_options_are_sent() -> None:
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    _, asked = reply_to(whole(response(message("{}"))), output_schema=schema, options={"reasoning": {"effort": "low"}})

    assert asked.sent["text"]["format"]["strict"] is True
    assert asked.sent["reasoning"] == {"effort": "low"}
    assert asked.sent["max_output_tokens"] == 4_096


@pytest.mark.parametrize(
    ("answer", "code", "is_transient"),
    [
        (stream({"type": "error", "code": "server_error", "message": "no"}), "model.unavailable", True),
        (ended("failed", error={"code": "context_length_exceeded"}, status="failed"), "model.context", False),
        (ended("failed", error={"code": "insufficient_quota"}, status="failed"), "model.unavailable", False),
        (stream({"type": "response.output_text.delta", "delta": "He"}, done=False), "model.unavailable", True),
        (stream({"type": "response.completed", "response": 5}), "model.unavailable", True),
        (whole({"output": "x"}), "model.unavailable", True),
        (http(200, b"garbage"), "model.unavailable", True),
        (http(200, b""), "model.unavailable", True),
        (refused(401), "model.rejected", False),
    ],
)
def test_bad_answers_mean_the_same_as_on_the_other_wire(answer: Say, code: str, is_transient: bool) -> None:
    with pytest.raises(ModelFailed) as failed:
        reply_to(answer)
    assert (failed.value.code, failed.value.is_transient) == (code, is_transient)
