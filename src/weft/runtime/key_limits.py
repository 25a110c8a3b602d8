"""Limits per key as the code of a host declares them, and how the key of an input is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from weft.core.unstorable import is_storable_text
from weft.errors import BadValue, WeftError
from weft.ports.tasks import KeyLimit
from weft.steps.failures import error_phrase

KEY_MAX = 200
"""How many characters a key may have."""

FindKey = Callable[[Mapping[str, Any]], object]


class DeclaredLimit(msgspec.Struct, frozen=True):
    """The limit of a step or workflow."""

    limit: KeyLimit
    find_key: FindKey | None = None
    """The function that finds the key, if the key is code of this process."""


def limit_key(what: str, declared: DeclaredLimit, given: bytes) -> str:
    """Return the key under which an input counts. Raises BadValue if the key is neither a text nor an integer."""
    limit = declared.limit
    if not limit.key and not limit.by_code:
        return ""
    if limit.by_code and declared.find_key is None:
        raise _bad_key(
            f"The key of the limit of {what} is a function, which this host does not have.",
            f"Host {what} in this process too, or write the key in CEL.",
        )
    values = {**limit.defaults, **msgspec.json.decode(given)}
    try:
        found = declared.find_key(values) if declared.find_key is not None else _evaluate_key(limit.key, values)
        return _as_text(what, found)
    except BadValue:
        raise
    except WeftError as error:
        raise _bad_key(f"The key of the limit of {what} could not be found: {error.message}", error.hint) from error
    except BaseException as error:  # also SystemExit: code of users must not end the host
        raise _bad_key(
            f"The key of the limit of {what} could not be found: {error_phrase(error)}.",
            "Correct the function.",
        ) from error


def _as_text(what: str, found: object) -> str:
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise _bad_key(
            f"The key of the limit of {what} is {msgspec.json.encode(found, enc_hook=repr).decode()[:60]}, "
            "which is neither a text nor an integer.",
            "Change the key, or give the input a text or an integer there.",
        )
    text = str(found)
    if not is_storable_text(text):
        raise _bad_key(
            f"The key of the limit of {what} has a character that cannot be stored: NUL, or half of a pair.",
            "Choose another key, such as an id.",
        )
    if len(text) > KEY_MAX:
        raise _bad_key(
            f"The key of the limit of {what} has {len(text):,} characters; the limit is {KEY_MAX}.",
            "Choose a shorter key, such as an id.",
        )
    return text


def _evaluate_key(key: str, values: Mapping[str, Any]) -> object:
    from weft.conditions import compile_expression  # noqa: PLC0415 - slow to import, rarely needed

    return compile_expression(key).evaluate(values)


def _bad_key(message: str, hint: str) -> BadValue:
    return BadValue(message, hint=hint, code="limit.bad_key")
