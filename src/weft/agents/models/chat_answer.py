"""Read an answer in the format of POST ``/chat/completions``: whole, or as a stream of pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Literal

import msgspec

from weft.agents.models.chat_request import ChatOpaque
from weft.agents.models.failures import ModelFailed, unavailable
from weft.ports.models import CallPart, ModelChunk, ModelMessage, ModelReply, ModelUsage, OpaquePart, Part, TextPart

OnChunk = Callable[[ModelChunk], None]
Finish = Literal["stop", "calls", "length", "refused"]

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refused",
}
_KNOWN = frozenset({"role", "content", "tool_calls", "function_call", "refusal", "annotations", "audio"})
_KNOWN_IN_CALLS = frozenset({"index", "id", "type", "function"})
_REASONING = frozenset({"reasoning_content", "reasoning"})
CALLS_READ_MAX = 1_000
"""How many calls an answer may have to be one. Agents perform far fewer, and tell the others back."""
NAME_CHARS_MAX = 200
"""How much of the name of a call is read. Names of tools are shorter."""

_Pieces = dict[str, list[Any]]
"""Fields that come in pieces, by name."""


class _CallPieces:
    """A tool call that is being put together."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: _Pieces = {}


class ChatAnswer:
    """Collects an answer."""

    def __init__(self, alias: str, model: str, on_chunk: OnChunk) -> None:
        self._alias = alias
        self._model = model
        self._on_chunk = on_chunk
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[object, _CallPieces] = {}
        self._extra: _Pieces = {}
        self._finish = ""
        self._usage = ModelUsage()

    def add(self, event: Mapping[str, Any]) -> bool:
        """Take a piece of a streamed answer. The usage comes after the end of the text, so more is always wanted."""
        self._note(event)
        for choice in _choices(event)[:1]:
            self._take(choice.get("delta"))
            self._note_finish(choice)
        return True

    def take_whole(self, answer: Mapping[str, Any]) -> None:
        """Take an answer that was not streamed. Raises ModelFailed if it is none."""
        self._note(answer)
        choices = _choices(answer)
        if not choices:
            raise unavailable(f"The model {self._alias} sent JSON that is not an answer.", in_doubt=True)
        self._take(choices[0].get("message"))
        self._note_finish(choices[0])
        self._finish = self._finish or "stop"

    def reply(self) -> ModelReply:
        """Return the reply. Raises ModelFailed if the stream was cut before its end."""
        if not self._finish:
            raise unavailable(f"The answer of the model {self._alias} was cut off.", in_doubt=True)
        refusal = "".join(self._refusal)
        calls = [
            CallPart(id=call.id, name=call.name, arguments="".join(call.arguments)) for call in self._calls.values()
        ]
        text = "".join(self._text) or refusal
        parts: list[Part] = [TextPart(text)] if text else []
        parts += calls
        calls_extra = {str(place): _joined(call.extra) for place, call in enumerate(self._calls.values()) if call.extra}
        if self._extra or calls_extra:
            extra = ChatOpaque(message=_joined(self._extra), calls=calls_extra)
            parts.append(OpaquePart(made_by=self._alias, data=msgspec.json.encode(extra)))
        finish = _FINISH.get(self._finish, "stop")
        if refusal:
            finish = "refused"
        elif finish in ("stop", "calls"):
            finish = "calls" if calls else "stop"
        return ModelReply(
            message=ModelMessage(role="assistant", parts=tuple(parts)),
            finish=finish,
            usage=self._usage,
            model=self._model,
        )

    def _note(self, answer: Mapping[str, Any]) -> None:
        model, usage = answer.get("model"), answer.get("usage")
        if isinstance(model, str) and model:
            self._model = model[:200]
        if isinstance(usage, dict):
            self._usage = read_usage(usage)

    def _note_finish(self, choice: Mapping[str, Any]) -> None:
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish = reason

    def _take(self, piece: object) -> None:
        if not isinstance(piece, dict):
            return
        self._take_text(text_of_content(piece.get("content")))
        refusal = piece.get("refusal")
        if isinstance(refusal, str):
            self._refusal.append(refusal)
        for call in objects_in(piece.get("tool_calls")):
            self._take_call(call)
        for name, value in piece.items():
            if name not in _KNOWN and value is not None:
                _add_piece(self._extra, name, value)
                if name in _REASONING and isinstance(value, str) and value:
                    self._on_chunk(ModelChunk(kind="reasoning", text=value))

    def _take_text(self, text: str) -> None:
        if text:
            self._text.append(text)
            self._on_chunk(ModelChunk(kind="text", text=text))

    def _take_call(self, piece: dict[str, Any]) -> None:
        given = piece.get("id")
        place: object = piece.get("index")
        if not isinstance(place, int):
            # Some providers do not number calls: then a piece with an id begins a call.
            is_new = bool(given) or not self._calls
            place = ("new", len(self._calls)) if is_new else next(reversed(self._calls))
        call = self._calls.get(place)
        if call is None:
            if len(self._calls) == CALLS_READ_MAX:
                raise too_many_calls(self._alias)
            call = self._calls[place] = _CallPieces()
        if isinstance(given, str) and given:
            call.id = given
        function = piece.get("function")
        if isinstance(function, dict):
            name, arguments = function.get("name"), function.get("arguments")
            if isinstance(name, str) and name and len(call.name) < NAME_CHARS_MAX:
                call.name += name
                self._on_chunk(ModelChunk(kind="call", text=name))
            if isinstance(arguments, str):
                call.arguments.append(arguments)
            elif arguments is not None:
                call.arguments.append(msgspec.json.encode(arguments).decode())
        for name, value in piece.items():
            if name not in _KNOWN_IN_CALLS and value is not None:
                _add_piece(call.extra, name, value)


def read_usage(usage: Mapping[str, Any]) -> ModelUsage:
    """Read the tokens that a provider reports. What is not a number counts as nothing."""
    return ModelUsage(
        input=token_count(usage, "prompt_tokens"),
        cached=token_count(usage.get("prompt_tokens_details"), "cached_tokens"),
        output=token_count(usage, "completion_tokens"),
        reasoning=token_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def text_of_content(content: object) -> str:
    """Return the words of a content: a text, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = (part.get("text") for part in objects_in(content) if part.get("type") in ("text", "output_text"))
    return "".join(text for text in parts if isinstance(text, str))


def _choices(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    return objects_in(answer.get("choices"))


def objects_in(found: object) -> list[dict[str, Any]]:
    """Return the objects in a list; none if it is no list."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def token_count(found: object, name: str) -> int:
    """Return a number of tokens; 0 if there is none."""
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def too_many_calls(alias: str) -> ModelFailed:
    """Return the failure of an answer with more calls than any model means."""
    return unavailable(f"The model {alias} sent garbage: more than {CALLS_READ_MAX:,} tool calls.", in_doubt=True)


def _add_piece(found: _Pieces, name: str, value: Any) -> None:
    """Add a piece of something that comes in pieces. They are joined at the end, because there may be many."""
    known = found.get(name)
    if known is not None and type(value) in (str, list) and type(known[0]) is type(value):
        known.append(value)
    else:
        found[name] = [value]


def _joined(found: _Pieces) -> dict[str, Any]:
    """Return fields that came in pieces."""
    whole: dict[str, Any] = {}
    for name, pieces in found.items():
        if isinstance(pieces[0], str):
            whole[name] = "".join(pieces)
        else:
            whole[name] = list(chain.from_iterable(pieces)) if isinstance(pieces[0], list) else pieces[0]
    return whole
