"""The reference of the HTTP API, written from its OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from weft.server.openapi import openapi_document
from weft.server.route_table import ROUTES
from weft.server.router import ApiRoute

INTRODUCTION = """\
# HTTP API

Every path of `weft serve` and of a mounted `app.router`. [The server](server.md) explains what they are for, how
callers are identified and what errors look like; the document at `/openapi.json` has every schema. Ids in paths are
percent-encoded. **Bold** fields are required.
"""

FAMILIES = {
    "runs": "Runs",
    "approvals": "Questions",
    "workflows": "Workflows",
    "steps": "Steps and goals",
    "schedules": "Schedules",
    "tasks": "Tasks of workers elsewhere",
    "": "Operation",
}
"""Where a route stands, by the first word of its path; the last takes all others."""
WORDS = {"plan": "steps", "dlq": "runs", "bulks": "runs", "node-types": "steps"}
KINDS = {"live": ", as server-sent events or a WebSocket", "wait": ", and may wait for it"}


def http_api_page() -> str:
    """Write the whole page."""
    document = openapi_document(ROUTES)
    families: dict[str, list[ApiRoute]] = {name: [] for name in FAMILIES}
    for route in sorted(ROUTES, key=lambda route: (first_word(route) in WORDS, route.path)):
        families[family(route)].append(route)
    parts = [INTRODUCTION]
    for name, title in FAMILIES.items():
        parts += [f"## {title}", "", *(line for route in families[name] for line in entry(route, document))]
    return "\n".join(parts)


def family(route: ApiRoute) -> str:
    word = WORDS.get(first_word(route), first_word(route))
    return word if word in FAMILIES else ""


def first_word(route: ApiRoute) -> str:
    found = re.match(r"/api/v1/([\w-]+)", route.path)
    return found[1] if found else ""


def entry(route: ApiRoute, document: Mapping[str, Any]) -> Iterator[str]:
    """Describe one route: who may use it, what it takes, what it answers."""
    operation = document["paths"][route.path][route.method.lower()]
    yield from (f"### `{route.method} {route.path}`", "")
    needs = f"Needs the scope `{route.scope.value}`." if route.scope else "Needs no key."
    statuses = " or ".join(str(status) for status in route.statuses)
    yield from (f"{route.summary}. {needs} Answers {statuses}{KINDS.get(route.kind, '')}.", "")
    schemas = document["components"]["schemas"]
    query = [
        field(one["name"], one["schema"], is_required=one["required"])
        for one in operation.get("parameters", ())
        if one["in"] == "query"
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    lines = [f"- Query: {', '.join(query)}"] if query else []
    lines += [f"- Body: {', '.join(found)}"] if (found := list(fields(body, schemas))) else []
    if lines:
        yield from (*lines, "")


def fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a body."""
    body = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for name, one in body.get("properties", {}).items():
        yield field(name, one, is_required=name in body.get("required", ()))


def field(name: str, schema: Mapping[str, Any], *, is_required: bool) -> str:
    shown = f"**`{name}`**" if is_required else f"`{name}`"
    return f"{shown} ({kind})" if (kind := type_of(schema)) else shown


def type_of(schema: Mapping[str, Any]) -> str:
    """A type in a word or two. Any value needs none."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(type_of(one) for one in schema["anyOf"] if one.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {})) or 'anything'}"
    return str(schema.get("type", ""))
