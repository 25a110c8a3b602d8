"""Read an answer in the format of POST ``/responses``: whole, or as a stream of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from weft.agents.models.answers import failed_event
from weft.agents.models.chat_answer import CALLS_READ_MAX, Finish, OnChunk, objects_in, token_count, too_many_calls
from weft.agents.models.failures import unavailable
from weft.ports.models import CallPart, ModelChunk, ModelMessage, ModelReply, ModelUsage, OpaquePart, Part, TextPart

_DELTAS: dict[str, Literal["text", "reasoning"]] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponsesAnswer:
    """Collects an answer."""

    def __init__(self, alias: str, model: str, on_chunk: OnChunk) -> None:
        self._alias = alias
        self._model = model
        self._on_chunk = on_chunk
        self._response: Mapping[str, Any] | None = None
        self._announced = 0
        """How many calls the stream has begun."""

    def add(self, event: Mapping[str, Any]) -> bool:
        """Take an event. The one that ends the answer has all of it."""
        kind = event.get("type")
        if kind == "error":
            raise failed_event(self._alias, dict(event))
        response, delta = event.get("response"), event.get("delta")
        if kind in _ENDS and isinstance(response, dict):
            self.take_whole(response)
            return False
        if isinstance(kind, str) and kind in _DELTAS and isinstance(delta, str) and delta:
            self._on_chunk(ModelChunk(kind=_DELTAS[kind], text=delta))
        item = event.get("item")
        if kind == "response.output_item.added" and isinstance(item, dict) and item.get("type") == "function_call":
            self._announced += 1
            if self._announced > CALLS_READ_MAX:
                raise too_many_calls(self._alias)
            self._on_chunk(ModelChunk(kind="call", text=str(item.get("name", ""))))
        return True

    def take_whole(self, answer: Mapping[str, Any]) -> None:
        """Take the whole answer. Raises ModelFailed if it is none."""
        if answer.get("error"):
            raise failed_event(self._alias, answer["error"])
        if answer.get("status") == "failed" or not isinstance(answer.get("output"), list):
            raise unavailable(f"The model {self._alias} sent JSON that is not an answer.", in_doubt=True)
        self._response = answer

    def reply(self) -> ModelReply:
        """Return the reply. Raises ModelFailed if the stream was cut before its end."""
        response = self._response
        if response is None:
            raise unavailable(f"The answer of the model {self._alias} was cut off.", in_doubt=True)
        parts: list[Part] = []
        refused = False
        for item in objects_in(response.get("output")):
            match item.get("type"):
                case "message":
                    text, said_no = _words(item)
                    refused = refused or said_no
                    parts += [TextPart(text)] if text else []
                case "function_call":
                    parts.append(_call_in_response(item))
                case _:
                    parts.append(OpaquePart(made_by=self._alias, data=msgspec.json.encode(item)))
        if sum(type(part) is CallPart for part in parts) > CALLS_READ_MAX:
            raise too_many_calls(self._alias)
        model = response.get("model")
        return ModelReply(
            message=ModelMessage(role="assistant", parts=tuple(parts)),
            finish=_finish(response, parts, refused=refused),
            usage=_usage(response.get("usage")),
            model=model[:200] if isinstance(model, str) and model else self._model,
        )


def _words(item: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the words of a message, and whether they refuse to answer."""
    content = item.get("content")
    if isinstance(content, str):
        return content, False
    parts = objects_in(content)
    texts = (part.get("refusal") if part.get("type") == "refusal" else part.get("text") for part in parts)
    words = "".join(text for text in texts if isinstance(text, str))
    return words, any(part.get("type") == "refusal" for part in parts)


def _call_in_response(item: Mapping[str, Any]) -> CallPart:
    found = item.get("call_id") or item.get("id")
    arguments = item.get("arguments")
    written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return CallPart(id=str(found or ""), name=str(item.get("name") or ""), arguments=written)


def _finish(response: Mapping[str, Any], parts: list[Part], *, refused: bool) -> Finish:
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if refused or reason == "content_filter":
        return "refused"
    if reason is not None or response.get("status") == "incomplete":
        return "length"
    return "calls" if any(isinstance(part, CallPart) for part in parts) else "stop"


def _usage(found: object) -> ModelUsage:
    details = found if isinstance(found, dict) else {}
    return ModelUsage(
        input=token_count(details, "input_tokens"),
        cached=token_count(details.get("input_tokens_details"), "cached_tokens"),
        output=token_count(details, "output_tokens"),
        reasoning=token_count(details.get("output_tokens_details"), "reasoning_tokens"),
    )
