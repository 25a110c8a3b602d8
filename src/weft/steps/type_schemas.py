"""Generate JSON Schema for user types, with all definitions at the top, in ``$defs``."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.steps.typewalk import is_model

_REF = "#/$defs/"


def schema_of_native(type_: Any) -> dict[str, object]:
    """Return the schema of a type that msgspec reads. Pydantic models inside supply their own schemas."""
    defs: dict[str, Any] = {}
    schema: dict[str, Any] = msgspec.json.schema(type_, schema_hook=lambda cls: _schema_of_model(cls, defs))
    defs = {**schema.pop("$defs", {}), **defs}
    return {**schema, "$defs": defs} if defs else schema


def schema_of_object(properties: dict[str, dict[str, Any]], required: list[str]) -> dict[str, object]:
    """Return the schema of an object from the schemas of its fields, with all definitions at the top."""
    defs: dict[str, Any] = {}
    parts = {name: hoist(schema, defs, prefer=name) for name, schema in properties.items()}
    schema: dict[str, object] = {
        "type": "object",
        "properties": parts,
        "required": required,
        "additionalProperties": False,
    }
    return {**schema, "$defs": defs} if defs else schema


def hoist(schema: dict[str, Any], defs: dict[str, Any], *, prefer: str) -> dict[str, Any]:
    """Move the ``$defs`` of a schema to ``defs`` and return the rest. A definition whose name is taken is renamed."""
    definitions = schema.get("$defs", {})
    renamed = {name: f"{prefer}.{name}" for name, body in definitions.items() if defs.get(name, body) != body}
    for name, body in definitions.items():
        defs[renamed.get(name, name)] = _with_refs(body, renamed)
    rest = {key: part for key, part in schema.items() if key != "$defs"}
    return _with_refs(rest, renamed)  # type: ignore[no-any-return]


def _schema_of_model(cls: type, defs: dict[str, Any]) -> dict[str, Any]:
    if not is_model(cls):
        return {}
    return hoist(cls.model_json_schema(), defs, prefer=cls.__name__)  # type: ignore[attr-defined]


def _with_refs(schema: Any, renamed: dict[str, str]) -> Any:
    if not renamed:
        return schema
    if isinstance(schema, list):
        return [_with_refs(part, renamed) for part in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _with_refs(part, renamed) for key, part in schema.items()}
    ref = changed.get("$ref")
    if isinstance(ref, str) and ref.removeprefix(_REF) in renamed:
        changed["$ref"] = _REF + renamed[ref.removeprefix(_REF)]
    return changed
