"""Estimate tokens without asking the provider. Pure.

Characters per token differ by model and language. The estimate begins with a common figure; every usage that a
provider reports corrects it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from weft.ports.models import (
    BlobPart,
    CallPart,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ModelUsage,
    OpaquePart,
    Part,
    ResultPart,
    TextPart,
)

CHARS_PER_TOKEN = 3.5
MESSAGE_CHARS = 16
"""What a message costs beside its content."""
BLOB_CHARS = 5_000
"""What an image or file costs, roughly: providers count them in ways of their own."""


def request_chars(request: ModelRequest) -> int:
    """Return how many characters a request has."""
    extra = sum(len(tool.name) + len(tool.description) + _json_chars(tool.parameters) for tool in request.tools)
    if request.output_schema is not None:
        extra += _json_chars(request.output_schema)
    return messages_chars(request.messages) + extra


def messages_chars(messages: Iterable[ModelMessage]) -> int:
    """Return how many characters messages have. Every turn asks for the whole conversation, so this must be quick."""
    total = 0
    for message in messages:
        total += MESSAGE_CHARS
        for part in message.parts:
            total += _PART_CHARS[type(part)](part)
    return total


def tokens_of(chars: int, chars_per_token: float = CHARS_PER_TOKEN) -> int:
    """Return about how many tokens these characters are, rounded up."""
    return -int(-chars // max(chars_per_token, 0.25))


def correct_chars_per_token(chars: int, tokens: int, before: float = CHARS_PER_TOKEN) -> float:
    """Return the characters per token that a provider's own count of these characters shows."""
    return chars / tokens if chars > 0 and tokens > 0 else before


def estimated_usage(request: ModelRequest, message: ModelMessage) -> ModelUsage:
    """Estimate the usage of a call whose provider reported none."""
    return ModelUsage(
        input=tokens_of(request_chars(request)), output=tokens_of(messages_chars([message])), is_estimate=True
    )


def with_usage(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """Return the reply with an estimate if its provider reported no usage."""
    if reply.usage.input or reply.usage.output:
        return reply
    return msgspec.structs.replace(reply, usage=estimated_usage(request, reply.message))


_PART_CHARS: Final[Mapping[type[Part], Callable[[Any], int]]] = {
    TextPart: lambda part: len(part.text),
    CallPart: lambda part: len(part.name) + len(part.arguments),
    ResultPart: lambda part: len(part.name) + len(part.content),
    OpaquePart: lambda part: len(part.data),
    BlobPart: lambda _: BLOB_CHARS,
}


def _json_chars(value: object) -> int:
    return len(msgspec.json.encode(value))
