"""Parts of the JSON Schemas that editors use for graph and step documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.documents.policies import BACKOFFS, RETRY

JsonSchema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ANY: JsonSchema = {}
PROSE: JsonSchema = {"type": "string"}
TEXT: JsonSchema = {"type": "string", "minLength": 1}
FLAG: JsonSchema = {"type": "boolean"}
WHOLE: JsonSchema = {"type": "integer", "minimum": 1}
COUNT: JsonSchema = {"type": "integer", "minimum": 0}
DURATION: JsonSchema = {"type": ["string", "number"], "description": "30s, 1h30m, 2d, ISO 8601, or seconds"}
MAP: JsonSchema = {"type": "object"}
TEXT_MAP: JsonSchema = {"type": "object", "additionalProperties": {"type": "string"}}
TEXTS: JsonSchema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}

PIPELINE: JsonSchema = {
    "type": "array",
    "minItems": 1,
    "maxItems": 20,
    "items": {"type": "object", "properties": {"step": TEXT}, "required": ["step"]},
}


def closed_object(fields: JsonSchema, *, required: Iterable[str] = ()) -> JsonSchema:
    """Return the schema of an object with these fields and no others."""
    schema: JsonSchema = {"type": "object", "properties": fields, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def ref(name: str) -> JsonSchema:
    """Return a reference to a named part of the schema."""
    return {"$ref": f"#/$defs/{name}"}


def by_id_or_listed(part: str, listed: str, *, least: int = 0) -> JsonSchema:
    """Return the schema of items that are a mapping by id, or a list of items with ids."""
    mapping: JsonSchema = {"type": "object", "additionalProperties": ref(part)}
    array: JsonSchema = {"type": "array", "items": ref(listed)}
    if least:
        mapping, array = {**mapping, "minProperties": least}, {**array, "minItems": least}
    return {"anyOf": [mapping, array]}


def retry_schema() -> JsonSchema:
    """Return the schema of ``retry``: a number of attempts, or a mapping."""
    retry = {**dict.fromkeys(RETRY, WHOLE), "backoff": {"enum": list(BACKOFFS)}}
    retry |= {"delay": DURATION, "max_delay": DURATION, "backoff_ms": COUNT}
    return {"anyOf": [WHOLE, closed_object(retry)]}
