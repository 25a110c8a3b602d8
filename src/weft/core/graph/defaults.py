"""Defaults in schemas. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_defaults(schema: Mapping[str, Any] | None, value: Any) -> Any:
    """Return the value with defaults added for missing fields, including those of nested objects.

    If there is nothing to add, return the same object, not a copy.
    """
    properties = (schema or {}).get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return value
    added: dict[str, Any] = {}
    for name, field in properties.items():
        if not isinstance(field, dict):
            continue
        if name not in value:
            if "default" in field:
                added[name] = field["default"]
            continue
        inner = with_defaults(field, value[name])
        if inner is not value[name]:
            added[name] = inner
    return {**value, **added} if added else value


def has_defaults(schema: Mapping[str, Any] | None) -> bool:
    """Return whether any field has a default."""
    properties = (schema or {}).get("properties")
    fields = properties.values() if isinstance(properties, dict) else ()
    return any(isinstance(field, dict) and ("default" in field or has_defaults(field)) for field in fields)
