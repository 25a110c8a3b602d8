"""The arguments of a workflow as they are typed: ``KEY=VALUE`` words, and a file of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UsageError
from weft.runtime.typed_words import Read


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Read ``key=value`` words. Raises UsageError."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is not KEY=VALUE.", hint="Write arguments by name: order_id=o-1 n=3")
        if key in found:
            raise UsageError(f"{key} is given twice.", hint="Give a list as JSON: items='[1, 2]'")
        found[key] = value
    return found


def given(words: Sequence[str], source: str | None, read: Read) -> dict[str, Any]:
    """Return the arguments of a workflow: those of the file, overridden by those that were typed. Raises UsageError."""
    named = dict(read_object(source)) if source is not None else {}
    for key, text in pairs(words).items():
        named[key] = read(key, text)
    return named


def unread(_: str, text: str) -> str:
    """Return a word as it was typed: the host that takes the run up reads it."""
    return text


def read_object(source: str) -> Mapping[str, Any]:
    """Read a JSON file that holds an object. Raises UsageError."""
    try:
        value = msgspec.json.decode(Path(source).read_bytes())
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{source} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{source} is not a JSON object.", hint='It names the arguments: {"order_id": "o-1"}')
    return value
