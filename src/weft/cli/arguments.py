"""Words on the command line as values: ``n=3`` is a number where one is wanted, ``order_id=17`` is text where text is.

A word that is JSON is taken as JSON if the parameter's type accepts that; else it is the text that was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.core.goal.types import Type, misfit, normal
from weft.errors import UsageError, WeftError
from weft.runtime.schemas import check_schema
from weft.steps.codec import Codec
from weft.steps.signature import Signature


def pairs(words: Sequence[str]) -> dict[str, str]:
    """``key=value`` words by key. Raises UsageError."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is not KEY=VALUE.", hint="Write arguments by name: order_id=o-1 n=3")
        if key in found:
            raise UsageError(f"{key} is given twice.", hint="Give a list as JSON: items='[1, 2]'")
        found[key] = value
    return found


def plain(text: str) -> Any:
    """JSON where it is JSON, else the text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


Read = Callable[[str, str], Any]
"""The value of an argument: its name and the word that was typed."""


def given(words: Sequence[str], source: str | None, read: Read | None) -> dict[str, Any]:
    """The arguments of a workflow: those of the file, and over them those that were typed. Raises UsageError."""
    named = dict(read_object(source)) if source is not None else {}
    for key, text in pairs(words).items():
        named[key] = plain(text) if read is None else read(key, text)
    return named


def by_signature(signature: Signature) -> Read:
    """Words as the parameters of a function say."""
    codecs = {parameter.name: parameter.codec for parameter in signature.parameters}
    return lambda key, text: fitting(text, codecs[key]) if key in codecs else plain(text)


def by_schema(schema: Mapping[str, Any] | None) -> Read:
    """Words as the input schema of a graph says."""
    declared = (schema or {}).get("properties") or {}
    return lambda key, text: by_type(declared.get(key))(text)


def by_type(declared: Type) -> Callable[[str], Any]:
    """A word as the type of a fact or a field says."""

    def fits(raw: bytes) -> bool:
        return misfit(declared, msgspec.json.decode(raw), raw, check_schema) is None

    return lambda text: text if normal(declared) == "string" else _reading(text, fits)


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
    """The reading of a word that its type accepts; the check at the door says what is wrong if there is none."""
    value = plain(text)
    if value == text or fits(msgspec.json.encode(value)) or not fits(msgspec.json.encode(text)):
        return value
    return text


def read_object(source: str) -> Mapping[str, Any]:
    """A JSON file that holds an object. Raises UsageError."""
    try:
        value = msgspec.json.decode(Path(source).read_bytes())
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{source} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{source} holds no JSON object.", hint='It names the arguments: {"order_id": "o-1"}')
    return value
