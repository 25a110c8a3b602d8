"""Defaults that a schema declares. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_defaults(schema: Mapping[str, Any] | None, value: Any) -> Any:
    """The value with the default of each declared field that it leaves out, also in objects inside it.

    The value itself where nothing is added.
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
    """Whether some field has a default."""
    properties = (schema or {}).get("properties")
    fields = properties.values() if isinstance(properties, dict) else ()
    return any(isinstance(field, dict) and ("default" in field or has_defaults(field)) for field in fields)
