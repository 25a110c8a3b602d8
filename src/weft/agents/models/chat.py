"""The wire ``chat``: POST ``/chat/completions``, which most providers and local servers speak."""

from __future__ import annotations

from weft.agents.models.aliases import ModelAlias
from weft.agents.models.chat_answer import ChatAnswer, OnChunk
from weft.agents.models.chat_request import Load, WrittenMessages, chat_request
from weft.agents.models.estimate import with_usage
from weft.agents.models.transport import ModelTransport
from weft.ports.models import ModelReply, ModelRequest


class ChatWire:
    """Asks one model."""

    def __init__(self, alias: ModelAlias, transport: ModelTransport, load: Load) -> None:
        self._alias = alias
        self._transport = transport
        self._load = load
        self._written = WrittenMessages()

    async def complete(self, request: ModelRequest, on_chunk: OnChunk) -> ModelReply:
        """Ask the model, as ``ModelPort.complete``. Raises ModelFailed."""
        answer = ChatAnswer(self._alias.name, self._alias.model, on_chunk)
        body = await chat_request(self._alias, request, self._load, self._written)
        await self._transport.post("chat/completions", body, request.key, answer)
        return with_usage(answer.reply(), request)
