"""The built-in step ``weft.model``: asks a model, and adds its answer to the conversation.

It reads the conversation up to ``head``, sends it together with ``add``, and puts one link with both ``add`` and the
answer. Nothing of the conversation is in the log but the new head and the answer itself. The fields of a request that a
call does not have (``tools``, ``output_schema``, ``options``) are taken from ``request`` in the blob ``spec``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, Protocol

import msgspec

from weft.agents.conversation import Conversations, HeldBlob
from weft.agents.models.aliases import ModelAlias, ModelAliases
from weft.agents.models.cache import AnswerCache, ReusedFrom
from weft.agents.models.chunks import ChunkWriter, turn_of
from weft.agents.models.failures import ModelFailed
from weft.agents.models.in_text import read_tool_in_text, with_tools_in_text
from weft.agents.models.watch import ModelWatch
from weft.agents.spec import RequestParts
from weft.core.budgets import MILLIONTHS
from weft.core.values import encode
from weft.errors import BadValue, LimitExceeded, Refused
from weft.ports.models import (
    CallPart,
    ModelMessage,
    ModelPort,
    ModelReply,
    ModelRequest,
    ModelUsage,
    Part,
    TextPart,
    ToolDefinition,
)
from weft.steps.http.failures import is_final
from weft.steps.secrets import REVEALED, strike_json
from weft.steps.strangers import without_nul
from weft.steps.task import MODEL, Executor, Task, current_task

OUTPUT_TOKENS_MIN = 1


class AskModel(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the step."""

    alias: str
    head: str = ""
    """The conversation so far; empty if it begins."""
    add: tuple[ModelMessage, ...] = ()
    """What came since."""
    turn: int = 0
    spec: str = ""
    """The blob with what all calls of an agent have in common."""
    tools: tuple[ToolDefinition, ...] | None = None
    output_schema: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    output_tokens: int | None = None
    """How many tokens the answer may have, if that is less than what the alias allows."""
    stream: str = ""
    """The output stream for the answer as it comes; empty for none."""
    is_tainted: bool | msgspec.UnsetType = msgspec.UNSET
    """Set if the run has taken in words of strangers."""
    called: int | msgspec.UnsetType = msgspec.UNSET
    """The turn of the calls whose results are in ``add``. Set only if it is not the one before this."""


class _Spec(msgspec.Struct, frozen=True):
    request: RequestParts = RequestParts()


class AskedCall(msgspec.Struct, frozen=True):
    """A tool call that the model wants."""

    id: str
    name: str
    arguments: str


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The output of the step."""

    head: str
    link: HeldBlob
    """The same as ``head``, in the form that keeps the conversation as long as the log that has it."""
    text: str
    calls: tuple[AskedCall, ...]
    finish: str
    usage: ModelUsage
    model: str
    """The provider's name of the model that answered."""
    alias: str
    money: int | None = None
    """What the call cost by the prices of its time, in millionths of ``currency``. None without prices."""
    currency: str = ""
    reused: ReusedFrom | None = None
    """Where the answer comes from, if an earlier one was reused."""


class ReachesModels(Protocol):
    """Finds models by their aliases."""

    aliases: ModelAliases

    def port(self, name: str) -> ModelPort:
        """Return the model with this alias. Raises UsageError."""
        ...


_decode_input = msgspec.json.Decoder(AskModel).decode
_decode_spec = msgspec.json.Decoder(_Spec).decode
_decode_answer = msgspec.json.Decoder(ModelAnswer).decode
_encode_message = msgspec.json.Encoder().encode
_decode_message = msgspec.json.Decoder(ModelMessage).decode


class ModelStep:
    """Asks models."""

    def __init__(
        self,
        ports: ReachesModels,
        conversations: Conversations,
        cache: AnswerCache,
        *,
        get: Callable[[str], Awaitable[bytes]],
        watch: ModelWatch,
    ) -> None:
        """``get`` returns the blob with a digest. ``watch`` learns how calls ended."""
        self.name = MODEL
        self._ports = ports
        self._conversations = conversations
        self._cache = cache
        self._get = get
        self._watch = watch

    def asking(self, ports: ReachesModels) -> ModelStep:
        """Return the same step with other models, for tests."""
        return ModelStep(ports, self._conversations, self._cache, get=self._get, watch=self._watch)

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        """Ask the model. Raises ModelFailed, and UsageError if there is no such model."""
        asked = _read_input(given)
        alias = self._ports.aliases.get(asked.alias)
        port = self._ports.port(asked.alias)
        task = current_task()
        run_id = task.run_id if task is not None else ""
        before = await self._conversations.read(asked.head, run_id)
        self._conversations.check_room(before, asked.add)
        parts = await self._parts(asked)
        request = ModelRequest(
            messages=(*before.messages, *asked.add),
            tools=parts.tools,
            output_schema=parts.output_schema,
            options=parts.options,
            output_tokens=_output_tokens(alias, asked.output_tokens, task),
            key=task.key if task is not None else "",
            turn=asked.turn,
        )
        emit = _emit_to(task, asked)
        chunks = ChunkWriter(emit)
        chunks.add_results(asked.add, _turn_called(task, asked))
        found = await self._cache.find(alias, request, run_id)
        try:
            reply, reused = found or (await self._ask(alias, port, request, chunks), None)
        except ModelFailed as failed:
            if not failed.in_doubt:
                _report_spending(task, alias, ModelUsage())  # the provider did not answer, so the call cost nothing
            raise
        finally:
            chunks.flush()
        if reused is not None:
            emit({"kind": "text", "text": reply.message.text})
            self._watch.answered(alias, request, reply, 0.0, is_reused=True)
        emit({"kind": "usage", **msgspec.to_builtins(reply.usage)})
        reply = msgspec.structs.replace(reply, message=_storable(without_secrets(reply.message)))
        if reused is None:
            await self._cache.remember(alias, request, run_id, reply)
        _report_spending(task, alias, reply.usage if reused is None else ModelUsage())
        said = (*asked.add, reply.message)
        after = await self._conversations.append(before, said, run=run_id, is_tainted=asked.is_tainted is True)
        assert after.held is not None
        answer = _model_answer(alias, reply, after.held, reused)
        return encode(answer, what=f"The model {alias.name} answered with")

    async def _ask(self, alias: ModelAlias, port: ModelPort, request: ModelRequest, chunks: ChunkWriter) -> ModelReply:
        self._watch.refuse_held(alias)
        clock = self._watch.clock
        begin = clock.monotonic()
        has_tools = "tools" in alias.supports
        try:
            reply = await port.complete(request if has_tools else with_tools_in_text(request), chunks.add)
        except Exception as failed:
            task = current_task()
            if isinstance(failed, ModelFailed) and not failed.in_doubt and task is not None:
                task.spend()  # the provider has made nothing that it could bill
            await self._watch.failed(alias, request, failed, clock.monotonic() - begin)
            raise
        self._watch.answered(alias, request, reply, clock.monotonic() - begin, is_reused=False)
        return reply if has_tools else read_tool_in_text(request, reply)

    async def _parts(self, asked: AskModel) -> RequestParts:
        common = RequestParts()
        if asked.spec:
            raw = await self._get(asked.spec.removeprefix("cas://").removeprefix("sha256:"))
            try:
                common = _decode_spec(raw).request
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadValue(f"The spec of an agent cannot be read: {error}.", code="value.wrong_type") from error
        return RequestParts(
            tools=asked.tools if asked.tools is not None else common.tools,
            output_schema=asked.output_schema if asked.output_schema is not None else common.output_schema,
            options={**common.options, **(asked.options or {})},
        )

    def is_final(self, error: BaseException) -> bool:
        """Return whether asking again cannot help."""
        if isinstance(error, ModelFailed):
            return not error.is_transient
        return is_final(error) or isinstance(error, Refused)


def _read_input(given: bytes) -> AskModel:
    try:
        return _decode_input(given)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadValue(f"{MODEL} got no valid call: {error}.", code="value.wrong_type") from error


def read_answer(raw: bytes) -> ModelAnswer:
    """Read the output of the step. What people set in its place may be no answer. Raises BadValue."""
    try:
        return _decode_answer(raw)
    except msgspec.DecodeError as error:
        raise BadValue(
            f"What was set in place of the answer of a model is none: {error}.",
            hint="Set it to the answer of an earlier turn, or fork the run before this turn.",
            code="value.wrong_type",
        ) from error


def _output_tokens(alias: ModelAlias, wanted: int | None, task: Task | None) -> int:
    """Return how many tokens the answer may have: what the alias allows, the call wants and the budget has left."""
    covered = task.output_tokens if task is not None and task.output_tokens else alias.output
    return max(OUTPUT_TOKENS_MIN, min(alias.output, covered, alias.output if wanted is None else wanted))


def _report_spending(task: Task | None, alias: ModelAlias, usage: ModelUsage) -> None:
    """Report what a call has cost, for the budgets of its run."""
    if task is None:
        return
    tokens, prices = usage.input + usage.output, alias.prices
    if prices is None:
        task.spend(tokens=tokens)
    else:
        task.spend(tokens=tokens, money=Decimal(prices.cost(usage)) / MILLIONTHS, currency=prices.currency)


def _emit_to(task: Task | None, asked: AskModel) -> Callable[[dict[str, Any]], None]:
    if task is None or not asked.stream:
        return _write_no_chunk
    about = {"run": task.run_id, "place": task.place, "turn": turn_of(task.place, asked.turn)}

    def emit(chunk: Mapping[str, Any]) -> None:
        with suppress(LimitExceeded):  # the store is behind or away; what a stream loses is in the answer
            task.emit_at_root(asked.stream, {**about, **chunk})

    return emit


def _turn_called(task: Task | None, asked: AskModel) -> int:
    if isinstance(asked.called, int):
        return asked.called
    return turn_of(task.place if task is not None else "", asked.turn) - 1


def _write_no_chunk(_chunk: Mapping[str, Any]) -> None:
    """Write no stream."""


def without_secrets(message: ModelMessage) -> ModelMessage:
    """Return a message in which the secrets that this process has revealed are replaced."""
    if not REVEALED:
        return message
    return _decode_message(strike_json(_encode_message(message)))


def _storable(message: ModelMessage) -> ModelMessage:
    """Return a message that every store keeps, whatever the model said."""
    return msgspec.structs.replace(message, parts=tuple(map(_storable_part, message.parts)))


def _storable_part(part: Part) -> Part:
    if isinstance(part, TextPart):
        return TextPart(without_nul(part.text))
    if isinstance(part, CallPart):
        return CallPart(id=without_nul(part.id), name=without_nul(part.name), arguments=without_nul(part.arguments))
    return part


def _model_answer(alias: ModelAlias, reply: ModelReply, link: HeldBlob, reused: ReusedFrom | None) -> ModelAnswer:
    message = reply.message
    return ModelAnswer(
        head=link.at,
        link=link,
        text=message.text,
        calls=tuple(AskedCall(call.id, call.name, call.arguments) for call in message.calls),
        finish=reply.finish,
        usage=reply.usage,
        model=without_nul(reply.model),
        alias=alias.name,
        money=alias.prices.cost(reply.usage) if alias.prices is not None else None,
        currency=alias.prices.currency if alias.prices is not None else "",
        reused=reused,
    )
