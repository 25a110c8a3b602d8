"""Models that answer garbage, nothing, ten megabytes, for ever, or with an error: each has one meaning, soon."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.model_kit import asking
from tests.agents.scripted_server import Say, delta, http, raw, refused, stream, text, whole
from tests.steps.http_kit import go
from weft.agents.models.chat_answer import CALLS_READ_MAX
from weft.agents.models.failures import ModelFailed
from weft.steps.secrets import Secret

MEGABYTE = b"data: " + b"x" * (1024 * 1024 - 8) + b"\n\n"


def failure_of(answer: Say, **options: Any) -> ModelFailed:
    async def scenario() -> ModelFailed:
        async with asking(answer, **options) as asked:
            with pytest.raises(ModelFailed) as failed:
                await asked.complete()
            assert asked.step.is_final(failed.value) is not failed.value.is_transient
            return failed.value

    return go(scenario())


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_a_temporary_status_is_tried_again(status: int) -> None:
    failed = failure_of(refused(status))

    assert (failed.code, failed.is_transient, failed.status) == ("model.unavailable", True, status)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 301])
def test_any_other_status_is_final(status: int) -> None:
    failed = failure_of(refused(status))

    assert (failed.code, failed.is_transient) == ("model.rejected", False)


@pytest.mark.parametrize(
    ("status", "code"), [(429, "insufficient_quota"), (403, "billing_not_active"), (402, "quota_exceeded")]
)
def test_a_used_up_quota_is_not_tried_again_but_asked_elsewhere(status: int, code: str) -> None:
    failed = failure_of(refused(status, code))

    assert (failed.code, failed.is_transient) == ("model.unavailable", False)


@pytest.mark.parametrize(
    "answer",
    [
        http(413, b"too large", "text/plain"),
        refused(400, "context_length_exceeded"),
        refused(400, message="This model's maximum context length is 8192 tokens."),
        whole({"error": {"code": 400, "type": "exceed_context_size_error", "message": "no"}}, 400),
        stream({"error": {"code": "context_length_exceeded", "message": "no"}}),
    ],
)
def test_a_conversation_that_is_too_long_is_told_as_that(answer: Say) -> None:
    assert failure_of(answer).code == "model.context"


def test_retry_after_is_told() -> None:
    assert failure_of(refused(429, Retry_After="7")).retry_after_ms == 7_000


@pytest.mark.parametrize(
    "answer",
    [
        http(200, b""),
        http(200, b"   \n"),
        http(200, b"<html>It works!</html>", "text/html"),
        http(200, b"{not json"),
        http(200, b"[]"),
        http(200, b"null"),
        http(200, b"{}"),
        http(200, b'{"choices": {"a": 1}}'),
        http(200, b'{"choices": []}'),
        http(200, b"[" * 100_000),
        http(200, b"\xff\xfe\x00garbage" * 100),
        stream(b"data: {garbage}\n\n"),
        stream(b"data: [1, 2]\n\n"),
        stream(b"\x00\x01\x02\n\n"),
        stream(),
        stream(delta(content="Hel"), done=False),
        stream(delta(content="Hel")),
        stream({"choices": [{"delta": 5}]}, {"choices": 7}),
    ],
)
def test_garbage_nothing_and_cut_streams_are_tried_again(answer: Say) -> None:
    failed = failure_of(answer)

    assert (failed.code, failed.is_transient) == ("model.unavailable", True)
    assert failed.in_doubt


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"),
        raw(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
        raw(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_a_server_that_is_no_api_is_asked_once(answer: Say) -> None:
    failed = failure_of(answer)

    assert not failed.is_transient


def test_a_connection_that_ends_at_once_is_tried_again() -> None:
    assert failure_of(raw()).is_transient


@pytest.mark.parametrize(
    "answer", [http(200, b"{" + b" " * 10_000_000), stream(*[MEGABYTE] * 10), stream(b"data: " + b"x" * 10_000_000)]
)
def test_ten_megabytes_are_not_read_to_the_end(answer: Say) -> None:
    failed = failure_of(answer)

    assert failed.code == "model.unavailable"
    assert failed.in_doubt, "the provider bills what it said"
    assert "x" * 100 not in str(failed)


CALLS = [{"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": "{}"}} for n in range(CALLS_READ_MAX + 1)]
ITEMS = [{"type": "function_call", "call_id": call["id"], "name": "f", "arguments": "{}"} for call in CALLS]


@pytest.mark.parametrize(
    ("api", "answer"),
    [
        ("chat", whole({"choices": [{"message": {"tool_calls": CALLS}}]})),
        ("chat", stream(*(delta(tool_calls=[call]) for call in CALLS))),
        ("responses", whole({"status": "completed", "output": ITEMS})),
        ("responses", stream(*({"type": "response.output_item.added", "item": item} for item in ITEMS))),
    ],
)
def test_an_answer_with_thousands_of_calls_is_garbage(api: str, answer: Say) -> None:
    failed = failure_of(answer, api=api)

    assert (failed.code, failed.in_doubt) == ("model.unavailable", True)
    assert "more than 1,000 tool calls" in str(failed)


def test_a_model_that_answers_for_ever_is_given_up_in_time() -> None:
    failed = failure_of(stream(delta(content="and"), done=False, hangs=True), timeout="1s")

    assert failed.is_transient
    assert failed.in_doubt
    assert "took longer than 1s" in failed.message


def test_a_stream_that_is_done_is_not_waited_for() -> None:
    async def scenario() -> None:
        end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
        async with asking(stream(delta(content="Hi"), end, hangs=True), timeout="1h") as asked:
            assert (await asked.complete()).message.text == "Hi"

    go(scenario())


@pytest.mark.parametrize(
    ("error", "code", "is_transient"),
    [
        ({"type": "overloaded_error", "message": "busy"}, "model.unavailable", True),
        ({"code": "insufficient_quota"}, "model.unavailable", False),
        ({"type": "invalid_request_error", "message": "bad tool"}, "model.rejected", False),
        ({"code": 400, "message": "bad"}, "model.rejected", False),
        ("out of memory", "model.unavailable", True),
        ({"message": {"deep": []}}, "model.unavailable", True),
    ],
)
def test_an_error_inside_a_stream_has_the_same_meaning(error: Any, code: str, is_transient: bool) -> None:
    failed = failure_of(stream(delta(content="Hel"), {"error": error}))

    assert (failed.code, failed.is_transient) == (code, is_transient)


def test_a_model_that_nobody_serves_is_tried_again() -> None:
    async def scenario() -> None:
        async with asking(text("ok")) as asked:
            pass
        with pytest.raises(ModelFailed, match="could not connect") as failed:
            await asked.complete()
        assert failed.value.is_transient
        await asked.ports.close()

    go(scenario())


def test_a_missing_key_is_final_and_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    failed = failure_of(text("ok"), key=Secret("env:NO_SUCH_KEY"))

    assert failed.code == "model.rejected"
    assert "NO_SUCH_KEY" in failed.message


def test_the_words_of_a_provider_are_one_short_line() -> None:
    failed = failure_of(refused(400, message="line\none " + "x" * 10_000 + "\x1b[31m"))

    assert "\n" not in failed.message
    assert len(failed.message) < 500
    assert "\x1b" not in failed.message
