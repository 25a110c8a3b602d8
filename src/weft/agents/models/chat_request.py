"""Write a request in the format of POST ``/chat/completions``."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any
from weakref import KeyedRef

import msgspec
from msgspec import Raw

from weft.agents.models.aliases import ModelAlias
from weft.agents.models.call_ids import with_unique_ids
from weft.agents.models.strict_schemas import is_strict
from weft.core.unstorable import encode_json
from weft.ports.models import (
    BlobPart,
    CallPart,
    ModelMessage,
    ModelRequest,
    OpaquePart,
    ResultPart,
    TextPart,
    ToolDefinition,
)

Load = Callable[[str], Awaitable[bytes]]
"""Returns the content of an image or file by its reference."""
SCHEMA_NAME = "answer"
WRITTEN_BYTES_MAX = 8 * 1024 * 1024
"""How much of what was written is kept for the next request."""


class ChatOpaque(msgspec.Struct, omit_defaults=True):
    """What a provider added to a message of its own, which it gets back unchanged."""

    message: dict[str, Any] = {}
    calls: dict[str, dict[str, Any]] = {}
    """By the position of the call."""


_decode_opaque = msgspec.json.Decoder(ChatOpaque).decode


class WrittenMessages:
    """Messages as JSON, as they were sent before. Each turn sends the whole conversation, and writes only its end.

    They are known by identity, as long as somebody has them: the turns of a conversation share its messages.
    """

    def __init__(self, bytes_max: int = WRITTEN_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._known: dict[int, tuple[KeyedRef[int, ModelMessage], list[Raw], int]] = {}
        self._bytes = 0
        self._on_gone = self._forget  # one for all, because each method that is looked up takes memory

    def __len__(self) -> int:
        return len(self._known)

    def known_beginning(self, messages: Sequence[ModelMessage]) -> tuple[int, list[Any]]:
        """Return how many of the first messages were written before, and what they were written as."""
        find, written, count = self._known.get, list[Any](), 0
        for message in messages:
            known = find(id(message))
            if known is None or known[0]() is not message:
                break
            written += known[1]
            count += 1
        return count, written

    def write(self, alias: str, message: ModelMessage) -> list[Raw]:
        """Return a message without images and files as the elements of a request."""
        place = id(message)
        known = self._known.get(place)
        if known is not None and known[0]() is message:
            return known[1]
        # Copies are exactly as long as their JSON: the encoder leaves its buffers half as long again.
        pieces = [bytes(memoryview(encode_json(one))) for one in _messages(alias, message)]
        written, size = [Raw(piece) for piece in pieces], sum(map(len, pieces))
        if self._bytes + size > self._bytes_max:
            self._known.clear()
            self._bytes = 0
        # Before something else gets the identity of the message, its entry is gone.
        self._known[place] = (KeyedRef(message, self._on_gone, place), written, size)
        self._bytes += size
        return written

    def _forget(self, gone: KeyedRef[int, ModelMessage]) -> None:
        known = self._known.pop(gone.key, None)
        if known is not None:
            self._bytes -= known[2]


async def chat_request(
    alias: ModelAlias, request: ModelRequest, load: Load, before: WrittenMessages | None = None
) -> dict[str, Any]:
    """Return the body of a request. The order is tools, system, messages, so that caches of prefixes hold.

    ``before`` has what earlier requests wrote.
    """
    body: dict[str, Any] = {"model": alias.model}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in sorted(request.tools, key=lambda tool: tool.name)]
    messages = with_unique_ids(request.messages)
    is_shared = before is not None and messages is request.messages
    count, written = before.known_beginning(messages) if before is not None and is_shared else (0, [])
    for message in messages[count:]:
        if message.role in ("system", "user") and any(type(part) is BlobPart for part in message.parts):
            written.append({"role": message.role, "content": await _contents(message, load)})
        elif before is not None and is_shared:
            written += before.write(alias.name, message)
        else:
            written += _messages(alias.name, message)
    body["messages"] = written
    if request.output_schema is not None and "schema" in alias.supports:
        schema = {"name": SCHEMA_NAME, "schema": request.output_schema, "strict": is_strict(request.output_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    options = {**alias.options, **request.options}
    # Providers renamed the field. An option with the old name keeps it.
    limit = "max_tokens" if "max_tokens" in options else "max_completion_tokens"
    given = [options.pop(name, None) for name in ("max_tokens", "max_completion_tokens")]
    body |= {name: value for name, value in options.items() if value is not None and name not in body}
    body[limit] = min([request.output_tokens, *(one for one in given if isinstance(one, int) and one > 0)])
    if "stream" in alias.supports:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _messages(alias: str, message: ModelMessage) -> Iterable[dict[str, Any]]:
    """Return a message without images and files. Every turn writes the whole conversation, so this must be quick."""
    if message.role == "tool":
        return [
            {"role": "tool", "tool_call_id": part.id, "content": part.content}
            for part in message.parts
            if type(part) is ResultPart
        ]
    if message.role == "assistant":
        return (_assistant(alias, message),)
    return ({"role": message.role, "content": message.text},)


def _assistant(alias: str, message: ModelMessage) -> dict[str, Any]:
    written: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    calls = [_chat_call(part) for part in message.parts if type(part) is CallPart]
    for part in message.parts:
        if type(part) is OpaquePart and part.made_by == alias:
            opaque = _decode_opaque(part.data)
            written |= opaque.message
            for place, more in opaque.calls.items():
                if place.isdigit() and int(place) < len(calls):
                    calls[int(place)] |= more
    if calls:
        written["tool_calls"] = calls
    elif written["content"] is None:
        written["content"] = ""
    return written


def _chat_call(part: CallPart) -> dict[str, Any]:
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments or "{}"}}


async def _contents(message: ModelMessage, load: Load) -> list[dict[str, Any]]:
    return [await _content(part, load) for part in message.parts if isinstance(part, TextPart | BlobPart)]


async def _content(part: TextPart | BlobPart, load: Load) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{base64.b64encode(await load(part.ref)).decode()}"
    if part.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": part.name or "file", "file_data": url}}
