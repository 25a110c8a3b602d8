"""Language models: what an agent asks one, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """Words."""

    text: str


class BlobPart(msgspec.Struct, frozen=True, tag="blob", kw_only=True):
    """An image or a file, by reference."""

    ref: str
    media_type: str
    name: str = ""


class CallPart(msgspec.Struct, frozen=True, tag="call", kw_only=True):
    """A tool call that a model wants."""

    id: str
    """The provider's id. It is echoed, and identifies nothing."""
    name: str
    arguments: str
    """The arguments as the model wrote them: JSON, if all is well."""


class ResultPart(msgspec.Struct, frozen=True, tag="result", kw_only=True):
    """The result of a tool call."""

    id: str
    name: str
    content: str
    """JSON text."""


class OpaquePart(msgspec.Struct, frozen=True, tag="opaque", kw_only=True):
    """Bytes that only the provider understands. They go back to it unchanged, and to no other provider."""

    made_by: str
    """The alias of the model that made it."""
    data: bytes


Part = TextPart | BlobPart | CallPart | ResultPart | OpaquePart


class ModelMessage(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The words of the message, and the contents of its results."""
        found = [
            part.text if isinstance(part, TextPart) else part.content
            for part in self.parts
            if type(part) is TextPart or type(part) is ResultPart
        ]
        return found[0] if len(found) == 1 else "\n".join(found)

    @property
    def calls(self) -> tuple[CallPart, ...]:
        """The tool calls of the message."""
        return tuple([part for part in self.parts if type(part) is CallPart])


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema."""


class ModelUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that a call used."""

    input: int = 0
    cached: int = 0
    """Those of the input that came from the provider's cache."""
    output: int = 0
    reasoning: int = 0
    """Those of the output that nobody sees."""
    is_estimate: bool = False
    """Whether the provider reported nothing, so that this was estimated."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model."""

    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()
    output_schema: Mapping[str, Any] | None = None
    """The JSON schema of the answer, if it is not plain text."""
    options: Mapping[str, Any] = {}
    """What goes to the provider as it is: temperature, seed and the like."""
    output_tokens: int = 4_096
    key: str = ""
    """The same in every attempt of the call. It is sent as the idempotency key."""
    turn: int = 0
    """The turn of the agent. It is not sent."""


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a model."""

    message: ModelMessage
    """Of the role ``assistant``."""
    finish: Literal["stop", "calls", "length", "refused"]
    usage: ModelUsage
    model: str
    """The provider's name of the model that answered."""


class ModelChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer that is still being written."""

    kind: Literal["text", "reasoning", "call"]
    text: str


class ModelPort(Protocol):
    """A model that can be asked."""

    async def complete(self, request: ModelRequest, on_chunk: Callable[[ModelChunk], None]) -> ModelReply:
        """Ask the model, and pass on pieces of its answer as they come.

        Raises ModelFailed. Its code says whether asking again can help.
        """
        ...
