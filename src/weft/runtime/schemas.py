"""Check JSON against a JSON Schema. Schemas are compiled once and may refer only to themselves."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

_encode = msgspec.json.Encoder(order="deterministic").encode


def check_schema(schema: dict[str, Any], raw: bytes) -> str | None:
    """Return what is wrong with the JSON and where, or None if it matches."""
    validator = _compile(_encode(schema))
    for error in validator.iter_errors(msgspec.json.decode(raw)):
        path = ".".join(str(part) for part in error.instance_path)
        return f"{path}: {error.message}" if path else str(error.message)
    return None


@lru_cache(maxsize=1024)
def _compile(schema: bytes) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - heavy, and only questions with a form need it

    def refuse(uri: str) -> Any:
        raise ValueError(f"a schema may not refer to {uri}")

    return jsonschema_rs.validator_for(msgspec.json.decode(schema), retriever=refuse)
