"""Scripted models for simulated worlds. A world never calls a real one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from weft.agents.models.aliases import ModelAliases
from weft.agents.models.estimate import estimated_usage
from weft.core.effects import PerformTask
from weft.core.values import encode
from weft.errors import UsageError
from weft.ports.models import (
    CallPart,
    ModelChunk,
    ModelMessage,
    ModelPort,
    ModelReply,
    ModelRequest,
    Part,
    TextPart,
    ToolDefinition,
)

PRINTED_CHARS_MAX = 4_000


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a model, as its provider would get it."""

    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolDefinition, ...]
    options: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    key: str
    """The idempotency key, which is the same in every attempt and after a crash."""
    attempt: int
    turn: int
    run_id: str


class ScriptedCalls(msgspec.Struct, frozen=True):
    """Tool calls as the reply of a scripted model."""

    calls: tuple[tuple[str, Any], ...]
    says: str = ""


def calls(*more: tuple[str, Any], says: str = "", **arguments: Any) -> ScriptedCalls:
    """Reply with tool calls: ``calls(refund={"cents": 4200})``. Several are made in parallel.

    A tool that is called twice is written ``calls(("find", {"id": 1}), ("find", {"id": 2}))``. Arguments that are a
    text are sent as they are, so that they need not be JSON. ``says`` is what the model says beside them.
    """
    found = (*more, *arguments.items())
    if not found:
        raise UsageError("calls() names no tool.", hint='Write calls(refund={"cents": 4200}).')
    return ScriptedCalls(found, says)


class ModelBook:
    """All model calls of a world, and the scripts that answer them."""

    def __init__(self) -> None:
        self._scripts: dict[str, list[Any]] = {}
        self._given: dict[tuple[str, str, int], int] = {}
        self._calls: dict[str, list[ModelCall]] = {}

    def script(self, alias: str, replies: tuple[Any, ...], known: ModelAliases) -> None:
        """Answer the calls of an alias with these replies, in order. Raises UsageError if there is no such model."""
        known.get(alias)
        if not replies:
            raise UsageError(f'world.fake_model("{alias}") has no replies.', hint="Pass texts, values or calls(...).")
        self._scripts[alias] = list(replies)
        self._given = {place: n for place, n in self._given.items() if place[0] != alias}

    def calls(self, alias: str) -> list[ModelCall]:
        """Return every call of an alias so far, across crashes."""
        return list(self._calls.get(alias, ()))

    def ports(self, aliases: ModelAliases, effect: PerformTask, run_id: str) -> ScriptedPorts:
        """Return the models that one attempt of a task can ask."""
        return ScriptedPorts(self, aliases, effect, run_id)

    def note(self, alias: str, call: ModelCall) -> None:
        """Keep a call."""
        self._calls.setdefault(alias, []).append(call)

    def reply(self, alias: str, effect: PerformTask, request: ModelRequest) -> Any:
        """Return the reply for this attempt. An attempt that is dispatched again gets the same one."""
        script = self._scripts.get(alias)
        if script is None:
            raise UsageError(
                f'The model "{alias}" has no script in this world, where no real model is called.',
                hint=f'Write world.fake_model("{alias}", "an answer").',
                code="usage.simulated",
            )
        place = (alias, effect.key, effect.attempt)
        if place not in self._given:
            self._given[place] = sum(1 for name, _, _ in self._given if name == alias)
        index = self._given[place]
        if index >= len(script):
            times = f"{len(script)} repl{'y' if len(script) == 1 else 'ies'}"
            raise UsageError(
                f'The model "{alias}" has {times} in its script, and was asked once more:\n{_printed(request)}',
                hint=f'Add a reply to world.fake_model("{alias}", …).',
                code="usage.simulated",
            )
        return script[index]


class ScriptedPorts:
    """The models that one attempt of a task can ask."""

    def __init__(self, book: ModelBook, aliases: ModelAliases, effect: PerformTask, run_id: str) -> None:
        self.aliases = aliases
        self._book = book
        self._effect = effect
        self._run_id = run_id

    def port(self, name: str) -> ModelPort:
        """Return the scripted model with this alias. Raises UsageError."""
        return _ScriptedModel(self._book, self.aliases.get(name).model, name, self._effect, self._run_id)


class _ScriptedModel:
    def __init__(self, book: ModelBook, model: str, alias: str, effect: PerformTask, run_id: str) -> None:
        self._book = book
        self._model = model
        self._alias = alias
        self._effect = effect
        self._run_id = run_id

    async def complete(self, request: ModelRequest, on_chunk: Callable[[ModelChunk], None]) -> ModelReply:
        call = ModelCall(
            messages=request.messages,
            tools=request.tools,
            options=request.options,
            output_schema=request.output_schema,
            key=request.key,
            attempt=self._effect.attempt,
            turn=request.turn,
            run_id=self._run_id,
        )
        self._book.note(self._alias, call)
        reply = await self._value(self._book.reply(self._alias, self._effect, request), request)
        for part in reply.message.parts:
            if isinstance(part, TextPart):
                on_chunk(ModelChunk(kind="text", text=part.text))
            elif isinstance(part, CallPart):
                on_chunk(ModelChunk(kind="call", text=part.name))
        return reply

    async def _value(self, given: Any, request: ModelRequest) -> ModelReply:
        if callable(given) and not isinstance(given, type):
            given = given(request)
            given = await given if inspect.isawaitable(given) else given
        if isinstance(given, BaseException):
            raise given.with_traceback(None)
        if isinstance(given, type) and issubclass(given, BaseException):
            raise given
        if isinstance(given, ModelReply):
            return given
        parts = _scripted_parts(given, len(request.messages))
        message = ModelMessage(role="assistant", parts=parts)
        return ModelReply(
            message=message,
            finish="calls" if message.calls else "stop",
            usage=estimated_usage(request, message),
            model=self._model,
        )


def _scripted_parts(given: Any, number: int) -> tuple[Part, ...]:
    if isinstance(given, ScriptedCalls):
        made = (
            CallPart(id=f"call_{number}_{n}", name=name, arguments=_scripted_text(arguments))
            for n, (name, arguments) in enumerate(given.calls)
        )
        return (*((TextPart(given.says),) if given.says else ()), *made)
    text = _scripted_text(given)
    return (TextPart(text),) if text else ()


def _scripted_text(given: Any) -> str:
    return given if isinstance(given, str) else encode(given, what="the script of a model has").decode()


def _printed(request: ModelRequest) -> str:
    lines = []
    for message in request.messages:
        wanted = "".join(f" → {call.name}({call.arguments})" for call in message.calls)
        lines.append(f"  {message.role}: {message.text}{wanted}")
    text = "\n".join(lines)
    return text if len(text) <= PRINTED_CHARS_MAX else f"…{text[-PRINTED_CHARS_MAX:]}"
