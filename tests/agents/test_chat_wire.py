"""The wire to POST /chat/completions: what is sent, and what its answers are read as."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.agents.model_kit import Asked, asking, system, user
from tests.agents.scripted_server import Say, delta, stream, text, tool_calls, whole
from tests.steps.http_kit import go
from weft.agents.models.aliases import ModelAlias
from weft.agents.models.chat_request import WRITTEN_BYTES_MAX, WrittenMessages, chat_request
from weft.core.events import DEFAULT_POLICY
from weft.ports.models import (
    BlobPart,
    CallPart,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ModelUsage,
    OpaquePart,
    ResultPart,
    TextPart,
    ToolDefinition,
)
from weft.steps.secrets import Secret

REFUND = ToolDefinition(name="refund", description="Give money back.", parameters={"type": "object"})
FIND = ToolDefinition(name="find", description="Find it.", parameters={"type": "object"})


def reply_to(*answers: Say, **options: Any) -> tuple[ModelReply, Asked]:
    async def scenario() -> tuple[ModelReply, Asked]:
        async with asking(*answers, **options) as asked:
            return await asked.complete(system("Be brief."), user("hello")), asked

    return go(scenario())


def test_a_streamed_text_arrives_in_pieces_and_as_a_whole() -> None:
    reply, asked = reply_to(text("Hello there"))

    assert reply.message.text == "Hello there"
    assert reply.finish == "stop"
    assert reply.model == "m-1"
    assert reply.usage == ModelUsage(input=120, cached=100, output=30, reasoning=10)
    assert "".join(chunk.text for chunk in asked.chunks) == "Hello there"
    assert asked.server.requests[0].path == "/v1/chat/completions"
    assert asked.sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]
    assert asked.sent["stream"] is True


def test_an_answer_that_is_not_streamed_means_the_same() -> None:
    answer = {"model": "m-1", "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}

    reply, asked = reply_to(whole(answer), supports=["tools"])

    assert reply.message.text == "Hi"
    assert "stream" not in asked.sent


def test_parallel_tool_calls_come_in_order_with_their_arguments() -> None:
    reply, _ = reply_to(tool_calls(("c1", "find", '{"id": 1}'), ("c2", "refund", '{"cents": 4200}')))

    assert reply.finish == "calls"
    assert reply.message.calls == (
        CallPart(id="c1", name="find", arguments='{"id": 1}'),
        CallPart(id="c2", name="refund", arguments='{"cents": 4200}'),
    )


def test_calls_without_numbers_are_told_apart_by_their_ids() -> None:
    reply, _ = reply_to(
        stream(
            delta(tool_calls=[{"id": "a", "function": {"name": "find", "arguments": "{}"}}]),
            delta(tool_calls=[{"id": "b", "function": {"name": "find", "arguments": {"id": 2}}}]),
            {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        )
    )

    assert [(call.id, call.arguments) for call in reply.message.calls] == [("a", "{}"), ("b", '{"id":2}')]
    assert reply.finish == "calls"


def test_fields_of_a_provider_that_come_in_pieces_are_kept_whole() -> None:
    reply, _ = reply_to(
        stream(
            delta(reasoning_content="Let ", steps=[1], seal=1),
            delta(reasoning_content="me see.", steps=[2], seal={"a": 2}),
            delta(tool_calls=[{"index": 3, "id": "a", "sig": "x", "function": {"name": "f", "arguments": "{}"}}]),
            delta(tool_calls=[{"index": 3, "sig": "y"}]),
            {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        )
    )

    (opaque,) = (part for part in reply.message.parts if isinstance(part, OpaquePart))
    assert msgspec.json.decode(opaque.data) == {
        "message": {"reasoning_content": "Let me see.", "steps": [1, 2], "seal": {"a": 2}},
        "calls": {"0": {"sig": "xy"}},
    }


@pytest.mark.parametrize(
    ("finish", "more", "meaning"),
    [
        ("length", {}, "length"),
        ("content_filter", {}, "refused"),
        ("stop", {"refusal": "I will not."}, "refused"),
        ("eos", {}, "stop"),
    ],
)
def test_the_way_an_answer_ends_is_told(finish: str, more: dict[str, Any], meaning: str) -> None:
    reply, _ = reply_to(text("well", finish=finish, **more))

    assert reply.finish == meaning


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "many"}, {"prompt_tokens": -1}])
def test_an_answer_without_usage_is_counted_by_estimate_and_marked_so(usage: Any) -> None:
    reply, _ = reply_to(text("four words are here", usage=usage))

    assert reply.usage.is_estimate
    assert reply.usage.input > 0
    assert reply.usage.output > 0


def test_options_of_the_alias_and_the_call_are_sent_as_they_are() -> None:
    async def scenario() -> None:
        async with asking(text("ok"), options={"temperature": 0, "seed": 1}, model="big", output=900) as asked:
            await asked.complete(options={"seed": 2, "user": None}, output_tokens=500, key="u1/turn/~0/model")

            sent = asked.sent
            assert (sent["temperature"], sent["seed"], sent["model"]) == (0, 2, "big")
            assert "user" not in sent
            assert sent["max_completion_tokens"] == 500
            assert asked.server.requests[0].headers["idempotency-key"] == "u1/turn/~0/model"

    go(scenario())


def test_the_old_name_of_the_limit_is_kept_if_an_option_has_it() -> None:
    _, asked = reply_to(text("ok"), options={"max_tokens": 100})

    assert asked.sent["max_tokens"] == 100
    assert "max_completion_tokens" not in asked.sent


def test_options_of_an_older_run_change_neither_the_model_nor_its_limit() -> None:
    async def scenario() -> None:
        async with asking(text("ok")) as asked:
            options = {"model": "big", "messages": [], "max_tokens": 10**6, "max_completion_tokens": 10**6}
            await asked.complete(options={**options, "temperature": 0})

            sent = asked.sent
            assert (sent["model"], sent["max_tokens"], sent["temperature"]) == (asked.alias.model, 4_096, 0)
            assert "max_completion_tokens" not in sent
            assert len(sent["messages"]) > 0

    go(scenario())


def test_tools_are_sent_by_name_so_that_caches_of_prefixes_hold() -> None:
    async def scenario() -> None:
        async with asking(text("ok")) as asked:
            await asked.complete(tools=(REFUND, FIND))

            assert [tool["function"]["name"] for tool in asked.sent["tools"]] == ["find", "refund"]
            assert list(asked.sent)[:3] == ["model", "tools", "messages"]

    go(scenario())


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            True,
        ),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, False),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}, False),
        (
            {"type": "object", "properties": {"a": {"minimum": 1}}, "required": ["a"], "additionalProperties": False},
            False,
        ),
        ({"type": "array", "items": {"type": "string"}}, False),
    ],
)
def test_a_schema_is_strict_only_in_the_strict_subset(schema: dict[str, Any], strict: bool) -> None:
    async def scenario() -> None:
        async with asking(text("{}")) as asked:
            await asked.complete(output_schema=schema)

            assert asked.sent["response_format"]["json_schema"]["strict"] is strict

    go(scenario())


def test_a_model_without_schema_is_sent_none() -> None:
    async def scenario() -> None:
        async with asking(text("{}"), supports=["stream"]) as asked:
            await asked.complete(output_schema={"type": "object"})

            assert "response_format" not in asked.sent

    go(scenario())


def test_ids_that_a_provider_repeats_or_omits_are_unique_when_they_go_back() -> None:
    conversation = (
        ModelMessage(
            role="assistant",
            parts=(CallPart(id="", name="find", arguments="{}"), CallPart(id="", name="find", arguments="{}")),
        ),
        ModelMessage(
            role="tool",
            parts=(ResultPart(id="", name="find", content="1"), ResultPart(id="", name="find", content="2")),
        ),
        ModelMessage(role="assistant", parts=(CallPart(id="x", name="find", arguments="{}"),)),
        ModelMessage(role="tool", parts=(ResultPart(id="x", name="find", content="3"),)),
        ModelMessage(role="assistant", parts=(CallPart(id="x", name="find", arguments="{}"),)),
        ModelMessage(role="tool", parts=(ResultPart(id="x", name="find", content="4"),)),
    )

    async def scenario() -> None:
        async with asking(text("ok")) as asked:
            await asked.complete(*conversation)

            sent = asked.sent["messages"]
            wanted = [call["id"] for message in sent for call in message.get("tool_calls", ())]
            answered = {message["tool_call_id"]: message["content"] for message in sent if message["role"] == "tool"}
            assert len(set(wanted)) == 4
            assert [answered[one] for one in wanted] == ["1", "2", "3", "4"]

    go(scenario())


def test_opaque_parts_go_back_unchanged_to_the_alias_that_made_them_and_to_no_other() -> None:
    signed = {"id": "c", "index": 0, "function": {"name": "find", "arguments": "{}"}, "extra_content": {"sign": "xyz"}}
    answer = stream(
        delta(reasoning_details=[{"data": "a=="}], reasoning_content="Let me "),
        delta(reasoning_details=[{"data": "b=="}], reasoning_content="think."),
        delta(tool_calls=[signed]),
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    )

    async def scenario() -> None:
        async with asking(answer, text("ok")) as asked:
            reply = await asked.complete()
            assert [chunk.text for chunk in asked.chunks if chunk.kind == "reasoning"] == ["Let me ", "think."]
            result = ModelMessage(role="tool", parts=(ResultPart(id="c", name="find", content="1"),))

            await asked.complete(reply.message, result)
            back = asked.sent["messages"][0]
            assert back["reasoning_details"] == [{"data": "a=="}, {"data": "b=="}]
            assert back["reasoning_content"] == "Let me think."
            assert back["tool_calls"][0]["extra_content"] == {"sign": "xyz"}

            foreign = [
                msgspec.structs.replace(part, made_by="other") if isinstance(part, OpaquePart) else part
                for part in reply.message.parts
            ]
            await asked.complete(msgspec.structs.replace(reply.message, parts=tuple(foreign)), result)
            assert set(asked.sent["messages"][0]) == {"role", "content", "tool_calls"}
            assert "extra_content" not in asked.sent["messages"][0]["tool_calls"][0]

    go(scenario())


def test_images_and_files_are_sent_with_their_content() -> None:
    async def scenario() -> None:
        async with asking(text("ok")) as asked:
            ref = f"cas://sha256:{await asked.blobs.put(b'picture')}"
            image = BlobPart(ref=ref, media_type="image/png")
            paper = BlobPart(ref=ref, media_type="application/pdf", name="bill.pdf")
            await asked.complete(ModelMessage(role="user", parts=(TextPart("see"), image, paper)))

            words, picture, file = asked.sent["messages"][0]["content"]
            assert words == {"type": "text", "text": "see"}
            assert picture["image_url"]["url"] == "data:image/png;base64,cGljdHVyZQ=="
            assert file["file"]["filename"] == "bill.pdf"

    go(scenario())


def test_the_key_is_sent_in_the_header_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-very-secret-1234")
    _, asked = reply_to(text("ok"), key=Secret("env:TEST_MODEL_KEY"))

    request = asked.server.requests[0]
    assert request.headers["authorization"] == "Bearer sk-very-secret-1234"
    assert "sk-very-secret-1234" not in str(request.body)


def test_what_was_written_before_is_sent_again_as_it_was() -> None:
    call = CallPart(id="c", name="look", arguments="{}")
    result = ModelMessage(role="tool", parts=(ResultPart(id="c", name="look", content="found"),))
    said = ModelMessage(role="assistant", parts=(TextPart("Wait."), call))
    told = ModelMessage(role="user", parts=(TextPart("go ☃"),))
    alias = ModelAlias(name="fast", url="http://127.0.0.1:9/v1", model="m", policy=DEFAULT_POLICY, timeout_ms=1_000)

    async def no_files(ref: str) -> bytes:
        raise AssertionError(ref)

    talks = [(told,), (told, said, result), (told, said, result, said, result), (said, result)]
    for bytes_max in (0, 100, WRITTEN_BYTES_MAX):
        written = WrittenMessages(bytes_max)
        for messages in [*talks, *talks]:
            request = ModelRequest(messages=messages)
            plain = go(chat_request(alias, request, no_files))
            again = go(chat_request(alias, request, no_files, written))
            assert msgspec.json.encode(again) == msgspec.json.encode(plain)
    assert written.write("fast", said) is written.write("fast", said)


def test_what_was_written_of_a_message_is_gone_with_it() -> None:
    before = WrittenMessages()
    kept = ModelMessage(role="user", parts=(TextPart("Hello."),))
    for number in range(10):
        before.write("fast", ModelMessage(role="user", parts=(TextPart(str(number)),)))
        before.write("fast", kept)

    assert len(before) == 1, "a conversation that was shortened takes no more memory than what is left of it"


def test_what_was_written_takes_no_more_memory_than_its_json() -> None:
    import tracemalloc

    from weft.ports.models import ResultPart

    said = [
        ModelMessage(role="tool", parts=(ResultPart(id=str(n), name="read", content="words " * 300),))
        for n in range(100)
    ]
    before = WrittenMessages()
    tracemalloc.start()
    try:
        taken = sum(len(bytes(one)) for message in said for one in before.write("fast", message))
        assert tracemalloc.get_traced_memory()[0] < 1.3 * taken
    finally:
        tracemalloc.stop()
