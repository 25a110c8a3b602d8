"""Check JSON against a JSON Schema. Schemas are compiled once and may refer only to themselves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

FINDINGS_MAX = 50
MESSAGE_CHARS_MAX = 300
"""How long a message may be. It quotes the value, which may have megabytes, and ends with what is wrong with it."""
PATH_CHARS_MAX = 1_000
_encode = msgspec.json.Encoder(order="deterministic").encode


def check_schema(schema: dict[str, Any], raw: bytes) -> str | None:
    """Return what is wrong with the JSON and where, or None if it matches. Nothing matches a schema that is none."""
    try:
        errors = _schema_errors(schema, raw)
    except ValueError as invalid:
        return _no_schema(invalid)
    for error in errors:
        path = ".".join(str(part) for part in error.instance_path)
        message = _short_message(str(error.message))
        return f"{path[:PATH_CHARS_MAX]}: {message}" if path else message
    return None


def schema_findings(schema: dict[str, Any], raw: bytes) -> list[dict[str, str]]:
    """Return what is wrong with the JSON, by path, as a form shows it at its fields."""
    found = []
    try:
        errors = _schema_errors(schema, raw)
    except ValueError as invalid:
        return [{"path": "", "message": _no_schema(invalid)}]
    for error in islice(errors, FINDINGS_MAX):
        parts = [str(part) for part in error.instance_path]
        missing = getattr(error.kind, "property", None)
        message = _short_message(str(error.message))
        if isinstance(missing, str):
            parts, message = [*parts, missing], "This is needed."
        path = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)
        found.append({"path": path[:PATH_CHARS_MAX], "message": message})
    return found


def _no_schema(error: ValueError) -> str:
    return f"The schema is not valid: {_short_message(str(error).partition(chr(10))[0])}."


def _short_message(message: str) -> str:
    half = MESSAGE_CHARS_MAX // 2
    return message if len(message) <= MESSAGE_CHARS_MAX else f"{message[:half]} … {message[-half:]}"


def _schema_errors(schema: dict[str, Any], raw: bytes) -> Iterator[Any]:
    return iter(_compile_schema(_encode(schema)).iter_errors(msgspec.json.decode(raw)))


@lru_cache(maxsize=1024)
def _compile_schema(schema: bytes) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - heavy, and only questions with a form need it

    def refuse(uri: str) -> Any:
        raise ValueError(f"a schema may not refer to {uri}")

    return jsonschema_rs.validator_for(msgspec.json.decode(schema), retriever=refuse)
