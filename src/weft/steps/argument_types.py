"""The JSON types of arguments, by which a process without the code refuses a value of the wrong type.

Only what a schema says without doubt is used. The host of the run checks everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

ANY = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
DEPTH_MAX = 20
"""How many schemas are followed from one to the next."""
_NAMES = {bool: "boolean", dict: "object", float: "number", int: "integer", list: "array", str: "string"}
_DEFINITIONS = "#/$defs/"


def argument_types(schema: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the JSON types that each property of an input may have; without those that may have any."""
    shared = schema.get("$defs", {})
    found = {name: _types(one, shared, 0) for name, one in schema.get("properties", {}).items()}
    return {name: sorted(types) for name, types in found.items() if types != ANY}


def either_type(schemas: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the JSON types that each property may have in at least one of several inputs."""
    known = [argument_types(schema) for schema in schemas]
    taken = [set(schema.get("properties", {})) for schema in schemas]
    found: dict[str, list[str]] = {}
    for name in set[str]().union(*known):
        types = [one.get(name, ANY) for one, names in zip(known, taken, strict=True) if name in names]
        both = frozenset[str]().union(*types)
        found |= {name: sorted(both)} if both != ANY else {}
    return found


def is_of_type(value: Any, types: Collection[str], *, is_word: bool) -> bool:
    """Return whether a JSON value has one of these types. ``is_word``: it was typed, and is read by its type later."""
    if _fits(value, types):
        return True
    if not is_word or not isinstance(value, str):
        return False
    try:
        return _fits(msgspec.json.decode(value), types)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False


def _fits(value: Any, types: Collection[str]) -> bool:
    if value is None:
        return "null" in types
    if type(value) is int or (type(value) is float and value.is_integer()):
        return "integer" in types or "number" in types
    return _NAMES.get(type(value), "") in types


def _types(schema: Any, shared: Mapping[str, Any], depth: int) -> frozenset[str]:
    if not isinstance(schema, Mapping) or depth > DEPTH_MAX:
        return ANY
    allowed = ANY
    if "type" in schema:
        said = schema["type"]
        allowed &= frozenset([said] if isinstance(said, str) else said)
        if "format" in schema:
            allowed |= {"integer", "number"}  # a Decimal may be written as a number
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        allowed &= frozenset("null" if value is None else _NAMES.get(type(value), "") for value in values)
    if "$ref" in schema:
        name = schema["$ref"]
        allowed &= _types(shared.get(name.removeprefix(_DEFINITIONS)), shared, depth + 1)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            allowed &= frozenset[str]().union(*(_types(one, shared, depth + 1) for one in schema[key]))
    return allowed or ANY
