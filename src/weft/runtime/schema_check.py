"""Check JSON against a JSON Schema. Schemas are compiled once and may refer only to themselves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

FINDINGS_MAX = 50
_encode = msgspec.json.Encoder(order="deterministic").encode


def check_schema(schema: dict[str, Any], raw: bytes) -> str | None:
    """Return what is wrong with the JSON and where, or None if it matches."""
    for error in _errors(schema, raw):
        path = ".".join(str(part) for part in error.instance_path)
        return f"{path}: {error.message}" if path else str(error.message)
    return None


def schema_findings(schema: dict[str, Any], raw: bytes) -> list[dict[str, str]]:
    """Return what is wrong with the JSON, by path, as a form shows it at its fields."""
    found = []
    for error in islice(_errors(schema, raw), FINDINGS_MAX):
        parts = [str(part) for part in error.instance_path]
        missing = getattr(error.kind, "property", None)
        message = str(error.message)
        if isinstance(missing, str):
            parts, message = [*parts, missing], "This is needed."
        path = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)
        found.append({"path": path, "message": message})
    return found


def _errors(schema: dict[str, Any], raw: bytes) -> Iterator[Any]:
    return iter(_compile(_encode(schema)).iter_errors(msgspec.json.decode(raw)))


@lru_cache(maxsize=1024)
def _compile(schema: bytes) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - heavy, and only questions with a form need it

    def refuse(uri: str) -> Any:
        raise ValueError(f"a schema may not refer to {uri}")

    return jsonschema_rs.validator_for(msgspec.json.decode(schema), retriever=refuse)
