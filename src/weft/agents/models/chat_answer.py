"""Read an answer in the format of POST ``/chat/completions``: whole, or as a stream of pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from weft.agents.models.chat_request import ChatOpaque
from weft.agents.models.failures import unavailable
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


class _CallPieces:
    """A tool call that is being put together."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class ChatAnswer:
    """Collects an answer."""

    def __init__(self, alias: str, model: str, on_chunk: OnChunk) -> None:
        self._alias = alias
        self._model = model
        self._on_chunk = on_chunk
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[object, _CallPieces] = {}
        self._extra = ChatOpaque(message={}, calls={})
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
        if self._extra.message or self._extra.calls:
            parts.append(OpaquePart(made_by=self._alias, data=msgspec.json.encode(self._extra)))
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
        for call in dicts(piece.get("tool_calls")):
            self._take_call(call)
        for name, value in piece.items():
            if name not in _KNOWN and value is not None:
                _grow(self._extra.message, name, value)
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
            call = self._calls[place] = _CallPieces()
        if isinstance(given, str) and given:
            call.id = given
        function = piece.get("function")
        if isinstance(function, dict):
            name, arguments = function.get("name"), function.get("arguments")
            if isinstance(name, str) and name:
                call.name += name
                self._on_chunk(ModelChunk(kind="call", text=name))
            if isinstance(arguments, str):
                call.arguments.append(arguments)
            elif arguments is not None:
                call.arguments.append(msgspec.json.encode(arguments).decode())
        position = str(list(self._calls).index(place))
        for name, value in piece.items():
            if name not in _KNOWN_IN_CALLS and value is not None:
                _grow(self._extra.calls.setdefault(position, {}), name, value)


def read_usage(usage: Mapping[str, Any]) -> ModelUsage:
    """Read the tokens that a provider reports. What is not a number counts as nothing."""
    return ModelUsage(
        input=count(usage, "prompt_tokens"),
        cached=count(usage.get("prompt_tokens_details"), "cached_tokens"),
        output=count(usage, "completion_tokens"),
        reasoning=count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def text_of_content(content: object) -> str:
    """Return the words of a content: a text, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = (part.get("text") for part in dicts(content) if part.get("type") in ("text", "output_text"))
    return "".join(text for text in parts if isinstance(text, str))


def _choices(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    return dicts(answer.get("choices"))


def dicts(found: object) -> list[dict[str, Any]]:
    """Return the objects in a list; none if it is no list."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def count(found: object, name: str) -> int:
    """Return a number of tokens; 0 if there is none."""
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _grow(found: dict[str, Any], name: str, value: Any) -> None:
    """Add a piece of something that comes in pieces."""
    known: Any = found.get(name)
    if type(known) in (str, list) and type(known) is type(value):
        found[name] = known + value
    else:
        found[name] = value
