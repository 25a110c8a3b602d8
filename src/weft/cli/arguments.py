"""Read the arguments of a workflow from the command line: ``KEY=VALUE`` words and a JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UsageError
from weft.runtime.typed_words import Read

ARGUMENTS = "Write arguments by name: order_id=o-1 n=3"
FILTERS = "Write filters by name: --where status=failed --where customer=7"


def split_pairs(words: Sequence[str], hint: str = ARGUMENTS) -> dict[str, str]:
    """Split ``KEY=VALUE`` words. Raises UsageError, with the hint."""
    texts: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is not KEY=VALUE.", hint=hint)
        if key in texts:
            raise UsageError(f"{key} is given twice.", hint="Write a list as JSON: items='[1, 2]'")
        texts[key] = value
    return texts


def read_arguments(words: Sequence[str], source: str | None, read: Read) -> dict[str, Any]:
    """Return the arguments of a workflow. Words override the values of the file. Raises UsageError."""
    arguments = dict(read_object(source)) if source is not None else {}
    for key, text in split_pairs(words).items():
        arguments[key] = read(key, text)
    return arguments


def keep_text(_: str, text: str) -> str:
    """Return an argument as text, so that the host of the run converts it."""
    return text


def read_object(source: str) -> Mapping[str, Any]:
    """Read a JSON object from a file. Raises UsageError."""
    try:
        value = msgspec.json.decode(Path(source).read_bytes())
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{source} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{source} is not a JSON object.", hint='Write the arguments by name: {"order_id": "o-1"}')
    return value
