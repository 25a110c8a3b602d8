"""Read schemas from documents: words such as ``string`` and ``string[]``, or JSON Schema."""

from __future__ import annotations

from itertools import islice
from typing import Any

from weft.conditions.failures import BadExpression
from weft.conditions.schemas import compile_schema
from weft.core.findings import At, Problems, did_you_mean
from weft.documents.fields import describe

MISFITS_MAX = 5
WORDS = ("string", "integer", "number", "boolean", "object", "array", "null", "any")
# A mapping with one of these keys is JSON Schema, not a list of fields. ``type`` alone could be the name of a field.
_KEYWORDS = frozenset({
    "$schema", "$ref", "$defs", "properties", "required", "additionalProperties", "patternProperties", "items", "enum",
    "const", "anyOf", "oneOf", "allOf", "not", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
    "pattern", "format", "default", "description", "title", "examples",
})  # fmt: skip


def is_schema_word(value: Any) -> bool:
    """Return whether a value is the short form of a type."""
    return (
        isinstance(value, str) and value.rstrip("[]") in WORDS and value == value.rstrip("[]") + "[]" * value.count("[")
    )


def is_json_schema(value: Any) -> bool:
    """Return whether a mapping is JSON Schema, rather than field names with their types."""
    if not isinstance(value, dict):
        return False
    typed = value.get("type")
    return bool(_KEYWORDS & set(value)) or (set(value) == {"type"} and is_schema_word(typed))


def object_schema(raw: Any, at: At, problems: Problems, *, required: bool) -> dict[str, Any] | None:
    """Read the JSON Schema of an object: field names with their types, or JSON Schema. Returns None if it is wrong.

    With ``required``, every field without a default is required.
    """
    if not isinstance(raw, dict):
        problems.add("wrong_type", at, f"must be a mapping of names to types, not {describe(raw)}.")
        return None
    whole = "properties" in raw or "$ref" in raw or "$schema" in raw or raw == {"type": "object"}
    if whole:
        return _check_schema(dict(raw), at, problems)
    properties = {name: field_schema(value, (*at, name), problems) for name, value in raw.items()}
    needed = [name for name, schema in properties.items() if required and "default" not in schema]
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": needed} if needed else schema


def field_schema(raw: Any, at: At, problems: Problems) -> dict[str, Any]:
    """Read the JSON Schema of one field."""
    if isinstance(raw, str):
        return _from_word(raw, at, problems)
    if not isinstance(raw, dict):
        problems.add("bad_schema", at, f"must be a type or JSON Schema, not {describe(raw)}.")
        return {}
    if is_json_schema(raw):
        expanded = dict(raw)
        word = raw.get("type")
        if isinstance(word, str) and word not in WORDS[:-1]:
            expanded = {**_from_word(word, (*at, "type"), problems), **{k: v for k, v in raw.items() if k != "type"}}
        return _check_schema(expanded, at, problems) or {}
    return object_schema(raw, at, problems, required=True) or {}


def _from_word(word: str, at: At, problems: Problems) -> dict[str, Any]:
    if not is_schema_word(word):
        problems.add("bad_schema", at, f'there is no type "{word[:60]}".', did_you_mean(word.rstrip("[]"), WORDS))
        return {}
    plain = word.rstrip("[]")
    schema: dict[str, Any] = {} if plain == "any" else {"type": plain}
    for _ in range(word.count("[")):
        schema = {"type": "array", "items": schema} if schema else {"type": "array"}
    return schema


def _check_schema(schema: dict[str, Any], at: At, problems: Problems) -> dict[str, Any] | None:
    """Return the schema, or None after reporting that it is not valid."""
    try:
        compile_schema(schema)
    except BadExpression as error:
        for found in error.errors:
            problems.add("bad_schema", at, found.message, found.hint)
        return None
    return schema


def schema_misfits(schema: dict[str, Any], value: Any) -> list[str]:
    """Return the first few errors of a value under a schema, as sentences."""
    import jsonschema_rs  # noqa: PLC0415  # slow to import, and only registered types need it

    found = []
    for error in islice(jsonschema_rs.validator_for(schema).iter_errors(value), MISFITS_MAX):
        place = ".".join(str(key) for key in error.instance_path)
        found.append(f"{place}: {error.message}." if place else f"{error.message}.")
    return found
