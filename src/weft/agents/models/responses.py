"""The wire ``responses``: POST ``/responses``, with which some providers reason between tool calls."""

from __future__ import annotations

from weft.agents.models.aliases import ModelAlias
from weft.agents.models.chat_answer import OnChunk
from weft.agents.models.chat_request import Load
from weft.agents.models.estimate import with_usage
from weft.agents.models.responses_answer import ResponsesAnswer
from weft.agents.models.responses_request import responses_request
from weft.agents.models.transport import ModelTransport
from weft.ports.models import ModelReply, ModelRequest


class ResponsesWire:
    """Asks one model."""

    def __init__(self, alias: ModelAlias, transport: ModelTransport, load: Load) -> None:
        self._alias = alias
        self._transport = transport
        self._load = load

    async def complete(self, request: ModelRequest, on_chunk: OnChunk) -> ModelReply:
        """Ask the model, as ``ModelPort.complete``. Raises ModelFailed."""
        answer = ResponsesAnswer(self._alias.name, self._alias.model, on_chunk)
        body = await responses_request(self._alias, request, self._load)
        await self._transport.post("responses", body, request.key, answer)
        return with_usage(answer.reply(), request)
