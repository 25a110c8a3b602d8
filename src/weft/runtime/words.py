"""Words of a command line as values: ``n=3`` is a number where one is wanted, ``order_id=17`` is text where text is.

A word that is JSON is taken as JSON if the declared type accepts that; else it is the text that was typed. Whoever
knows the workflow reads them: the command line with ``--app``, else the host that takes the run up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core.goal.types import Type, misfit, normal
from weft.errors import WeftError
from weft.runtime.schemas import check_schema
from weft.steps.codec import Codec
from weft.steps.signature import Signature

Read = Callable[[str, str], Any]
"""The value of an argument: its name and the word that was typed."""


def plain(text: str) -> Any:
    """JSON where it is JSON, else the text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


def by_signature(signature: Signature) -> Read:
    """Words as the parameters of a function say."""
    codecs = {parameter.name: parameter.codec for parameter in signature.parameters}
    return lambda key, text: fitting(text, codecs[key]) if key in codecs else plain(text)


def by_schema(schema: Mapping[str, Any] | None) -> Read:
    """Words as the input schema of a graph says."""
    whole = schema or {}
    shared = {name: whole[name] for name in ("$defs", "definitions") if name in whole}

    def read(key: str, text: str) -> Any:
        declared = (whole.get("properties") or {}).get(key)
        # A reference in a field is one into the whole schema.
        return by_type({**declared, **shared} if shared and isinstance(declared, dict) else declared)(text)

    return read


def by_type(declared: Type) -> Callable[[str], Any]:
    """A word as the type of a fact or a field says."""

    def fits(raw: bytes) -> bool:
        return misfit(declared, msgspec.json.decode(raw), raw, check_schema) is None

    return lambda text: text if _is_text(declared) else _reading(text, fits)


def _is_text(declared: Type) -> bool:
    kind = declared.get("type") if isinstance(declared, dict) else normal(declared)
    return kind == "string"


def fitting(text: str, codec: Codec[Any]) -> Any:
    """A word as the type of a parameter says."""

    def fits(raw: bytes) -> bool:
        try:
            codec.decode(raw)
        except WeftError:
            return False
        return True

    return text if codec.type is str else _reading(text, fits)


def _reading(text: str, fits: Callable[[bytes], bool]) -> Any:
    """The reading of a word that its type accepts; the check of the start says what is wrong if there is none."""
    value = plain(text)
    if value == text or fits(msgspec.json.encode(value)) or not fits(msgspec.json.encode(text)):
        return value
    return text


def read_words(raw: bytes, words: Sequence[str], read: Read) -> bytes:
    """An input, with the arguments that are words read."""
    named = msgspec.json.decode(raw)
    return msgspec.json.encode({name: read(name, each) if name in words else each for name, each in named.items()})


def read_alike(raw: bytes, words: Sequence[str], other: bytes) -> bytes:
    """An input with each word read as JSON where the other input has that value, else as text."""
    if not words:
        return raw
    there = msgspec.json.decode(other)

    def read(name: str, text: str) -> Any:
        value = plain(text)
        # As JSON: Python would take true for 1.
        return value if name in there and msgspec.json.encode(there[name]) == msgspec.json.encode(value) else text

    return read_words(raw, words, read)
