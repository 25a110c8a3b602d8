"""Words on the command line as values: ``n=3`` is a number where one is wanted, ``order_id=17`` is text where text is.

A word that is JSON is taken as JSON if the parameter's type accepts that; else it is the text that was typed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UsageError, WeftError
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


def given(words: Sequence[str], source: str | None, signature: Signature | None) -> dict[str, Any]:
    """The arguments of a workflow: those of the file, and over them those that were typed. Raises UsageError."""
    named = dict(read_object(source)) if source is not None else {}
    codecs = {parameter.name: parameter.codec for parameter in signature.parameters} if signature is not None else {}
    for key, text in pairs(words).items():
        codec = codecs.get(key)
        named[key] = plain(text) if codec is None else fitting(text, codec)
    return named


def fitting(text: str, codec: Codec[Any]) -> Any:
    """The reading of a word that its type accepts; the check at the door says what is wrong if there is none."""
    if codec.type is str:
        return text
    value = plain(text)
    return value if value == text or _fits(value, codec) or not _fits(text, codec) else text


def _fits(value: Any, codec: Codec[Any]) -> bool:
    try:
        codec.decode(msgspec.json.encode(value))
    except WeftError:
        return False
    return True


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
