"""Convert words from a command line to values. ``n=3`` is a number if ``n`` is declared as one, otherwise text.

A word that is JSON is read as JSON if the declared type accepts the value, else it is text. Reading needs the workflow:
the command line reads words with ``--app``, else the host that claims the run does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core.goal.types import Type, normalize, type_error
from weft.errors import WeftError
from weft.runtime.schema_check import check_schema
from weft.steps.codec import Codec
from weft.steps.signature import Signature

Read = Callable[[str, str], Any]
"""Returns the value of an argument for its name and the word that was typed."""


def parse_word(text: str) -> Any:
    """Return the word as JSON if it is JSON, else as text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


def reader_for_signature(signature: Signature) -> Read:
    """Return a reader of words by the types of a function's parameters."""
    codecs = {parameter.name: parameter.codec for parameter in signature.parameters}
    return lambda key, text: parse_by_codec(text, codecs[key]) if key in codecs else parse_word(text)


def reader_for_schema(schema: Mapping[str, Any] | None) -> Read:
    """Return a reader of words by the input schema of a graph."""
    whole = schema or {}
    shared = {name: whole[name] for name in ("$defs", "definitions") if name in whole}

    def read(key: str, text: str) -> Any:
        declared = (whole.get("properties") or {}).get(key)
        # References in a field refer to the whole schema.
        return reader_for_type({**declared, **shared} if shared and isinstance(declared, dict) else declared)(text)

    return read


def reader_for_type(declared: Type) -> Callable[[str], Any]:
    """Return a reader of words by the type of a fact or a field."""

    def fits(raw: bytes) -> bool:
        return type_error(declared, msgspec.json.decode(raw), raw, check_schema) is None

    return lambda text: text if _is_text(declared) else _parse_as_accepted(text, fits)


def _is_text(declared: Type) -> bool:
    kind = declared.get("type") if isinstance(declared, dict) else normalize(declared)
    return kind == "string"


def parse_by_codec(text: str, codec: Codec[Any]) -> Any:
    """Read a word by the type of a parameter."""

    def fits(raw: bytes) -> bool:
        try:
            codec.decode(raw)
        except WeftError:
            return False
        return True

    return text if codec.type is str else _parse_as_accepted(text, fits)


def _parse_as_accepted(text: str, fits: Callable[[bytes], bool]) -> Any:
    """Read a word as JSON or as text, whichever its type accepts. If it accepts neither, the start is refused later."""
    value = parse_word(text)
    if value == text or fits(msgspec.json.encode(value)) or not fits(msgspec.json.encode(text)):
        return value
    return text


def read_words(raw: bytes, words: Sequence[str], read: Read) -> bytes:
    """Return an input with its words replaced by their values."""
    named = msgspec.json.decode(raw)
    return msgspec.json.encode({name: read(name, each) if name in words else each for name, each in named.items()})


def read_words_like(raw: bytes, words: Sequence[str], other: bytes) -> bytes:
    """Return an input with each word read as JSON if the other input has that value, else as text."""
    if not words:
        return raw
    there = msgspec.json.decode(other)

    def read(name: str, text: str) -> Any:
        value = parse_word(text)
        # Compare as JSON: in Python, True equals 1.
        return value if name in there and msgspec.json.encode(there[name]) == msgspec.json.encode(value) else text

    return read_words(raw, words, read)
