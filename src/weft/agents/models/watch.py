"""What happens beside a model call: its model is held, it is counted, and its span says what was asked."""

from __future__ import annotations

from typing import Protocol

import msgspec

from weft.agents.models.aliases import ModelAlias
from weft.agents.models.failures import ModelFailed
from weft.agents.models.meter import ModelMeter, span_attributes
from weft.core.durations import format_ms
from weft.ports.clock import Clock
from weft.ports.models import ModelReply, ModelRequest
from weft.settings import variable
from weft.steps.secrets import replace_secrets
from weft.steps.task import STEP_TRACE

CONTENT_CHARS_MAX = 64 * 1024


class HoldsModels(Protocol):
    """Holds the calls of models on all hosts."""

    async def hold(self, model: str, wait_ms: int) -> None:
        """Hold the calls of a model for at least this long."""
        ...

    def until(self, model: str) -> int | None:
        """Return until when the calls of a model are held; None if they are not."""
        ...


class ModelWatch:
    """Learns how the calls of models ended."""

    def __init__(self, clock: Clock, held: HoldsModels, meter: ModelMeter) -> None:
        self.clock = clock
        self._held = held
        self._meter = meter
        self._has_content = variable("WEFT_TRACE_CONTENT") == "1"

    def refuse_held(self, alias: ModelAlias) -> None:
        """Let the next model be asked if the provider of this one asked to wait. Raises ModelFailed.

        The call of a model without a fallback is not made before that time.
        """
        until = self._held.until(alias.name) if alias.fallback else None
        if until is not None:
            wait = format_ms(until - self.clock.now_ms())
            raise ModelFailed(f"The model {alias.name} is held: its provider asked to wait {wait} more.")

    def answered(
        self, alias: ModelAlias, request: ModelRequest, reply: ModelReply, seconds: float, *, is_reused: bool
    ) -> None:
        """Learn of a call that was answered."""
        self._meter.count_reply(alias, reply, seconds, is_reused=is_reused)
        self._note(alias, request, reply)

    async def failed(self, alias: ModelAlias, request: ModelRequest, error: Exception, seconds: float) -> None:
        """Learn of a call that failed. If the provider asked to wait, nobody asks it before that."""
        self._meter.count_failure(alias, error, seconds)
        self._note(alias, request, None)
        if isinstance(error, ModelFailed) and error.retry_after_ms:
            await self._held.hold(alias.name, error.retry_after_ms)

    def _note(self, alias: ModelAlias, request: ModelRequest, reply: ModelReply | None) -> None:
        trace = STEP_TRACE.get(None)
        if trace is None:
            return
        noted = dict(span_attributes(alias, request.turn, reply))
        if self._has_content:
            noted["gen_ai.input.messages"] = _content(request.messages)
            if reply is not None:
                noted["gen_ai.output.messages"] = _content([reply.message])
        trace.note(noted)


def _content(messages: object) -> str:
    return replace_secrets(msgspec.json.encode(messages).decode())[:CONTENT_CHARS_MAX]
