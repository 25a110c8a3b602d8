"""Find out whether a JSON schema lies in the subset that providers enforce strictly. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEYWORDS = frozenset({
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "items", "properties", "required",
    "title", "type",
})  # fmt: skip
DEPTH_MAX = 5


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Return whether the schema is an object of the strict subset: all is required, and nothing else is allowed."""
    return schema.get("type") == "object" and "anyOf" not in schema and _is_strict(schema, 0)


def _is_strict(schema: object, depth: int) -> bool:
    if not isinstance(schema, Mapping) or depth > DEPTH_MAX or not schema.keys() <= _KEYWORDS:
        return False
    below = [*_values(schema.get("anyOf", [])), *_values(schema.get("$defs", {}))]
    if "items" in schema:
        below.append(schema["items"])
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping) or schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != set(properties):
            return False
        below += properties.values()
    return all(_is_strict(one, depth + 1) for one in below)


def _values(found: object) -> list[Any]:
    if isinstance(found, Mapping):
        return list(found.values())
    return list(found) if isinstance(found, list) else [None]
