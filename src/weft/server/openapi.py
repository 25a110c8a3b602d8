"""Generate the OpenAPI document from the routes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from weft.server.problems import TITLES, ProblemDetails, status_of
from weft.server.request import KEY_CHARS_MAX
from weft.server.router import ApiRoute
from weft.tokens import SIGNATURE_HEADER

REF = "#/components/schemas/{name}"
PROBLEM_MEDIA = "application/problem+json"
KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeated request with the same key takes effect once and gets the same answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "pattern": r"^[\x21-\x7e]+$"},
}
LAST_ID_PARAMETER = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last event that the client saw. The stream continues after it.",
    "schema": {"type": "string", "maxLength": 1_000, "pattern": r"^[0-9]{1,15}$"},
}
SIGNATURE_PARAMETER = {
    "name": SIGNATURE_HEADER,
    "in": "header",
    "required": True,
    "description": "t=SECONDS,v1=HEX: HMAC-SHA256 of the seconds, a dot and the body, with the key of the call.",
    "schema": {"type": "string", "maxLength": 200},
}


def openapi_document(routes: Sequence[ApiRoute]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these routes."""
    paths: dict[str, dict[str, Any]] = {}
    schemas, components = _schemas(routes)
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Weft",
            "version": version("weft"),
            "description": "Durable workflows: start runs, inspect them, control them, perform their steps.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    }


def _schemas(routes: Sequence[ApiRoute]) -> tuple[dict[Any, Any], dict[str, Any]]:
    types: dict[Any, None] = {ProblemDetails: None}
    for route in routes:
        types.update(dict.fromkeys(one for one in (route.body, route.answer, route.dry_answer) if one is not None))
    found, components = msgspec.json.schema_components(list(types), ref_template=REF)
    return dict(zip(types, found, strict=True)), components


def _operation(route: ApiRoute, schemas: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": route.name, "summary": route.summary}
    parameters: list[Any] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.parameters
    ]
    parameters += _query_parameters(route.query) if route.query is not None else []
    if route.is_write:
        parameters.append(KEY_PARAMETER)
    if route.body is msgspec.Raw and route.scope is None:
        parameters.append(SIGNATURE_PARAMETER)
    if route.kind == "live" and "{" in route.path:
        parameters.append(LAST_ID_PARAMETER)
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {
            "required": _is_required(route.body),
            "content": {route.takes: {"schema": schemas[route.body]}},
        }
    operation["responses"] = _responses(route, schemas)
    if route.scope is not None:
        operation["x-weft-scope"] = str(route.scope)
        # A server without keys accepts requests from its own machine without one.
        operation["security"] = [{"bearer": []}, {}]
    if route.kind == "live":
        operation["x-weft-websocket"] = True
    return operation


def _is_required(body: type[msgspec.Struct | msgspec.Raw]) -> bool:
    """Return whether a body has required fields."""
    return issubclass(body, msgspec.Raw) or any(field.required for field in msgspec.structs.fields(body))


def _query_parameters(query: type[msgspec.Struct]) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(query)
    (name,) = schema["$defs"]
    properties: dict[str, Any] = schema["$defs"][name]["properties"]
    required = schema["$defs"][name].get("required", [])
    return [
        {"name": field, "in": "query", "required": field in required, "schema": _query_schema(properties[field])}
        for field in properties
    ]


def _query_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a query parameter. An optional parameter may be left out but cannot be null."""
    if "anyOf" not in schema:
        return {name: value for name, value in schema.items() if name != "default"} | _default_of(schema)
    kept = [one for one in schema["anyOf"] if one.get("type") != "null"]
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


def _default_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"default": schema["default"]} if schema.get("default") not in (None, []) else {}


def _responses(route: ApiRoute, schemas: dict[Any, Any]) -> dict[str, Any]:
    """Return all responses. A page for people may share its status with a problem document."""
    found = _answers(route, schemas)
    for status, details in _problems(route).items():
        if status in found and not route.media.startswith("text/html"):
            continue
        content = found.get(status, details)["content"] | details["content"]
        found[status] = {**details, "content": content}
    return found


def _answers(route: ApiRoute, schemas: dict[Any, Any]) -> dict[str, Any]:
    schema = schemas[route.answer] if route.answer is not None else {"type": "string"}
    media = route.media.partition(";")[0]
    found: dict[str, Any] = {
        str(status): {"description": TITLES.get(status, "Done"), "content": {media: {"schema": schema}}}
        for status in route.statuses
    }
    if route.dry_answer is not None:
        dry = schemas[route.dry_answer]
        both = {"anyOf": [schema, dry]} if "200" in found else dry
        found["200"] = {"description": TITLES.get(200, "Done"), "content": {media: {"schema": both}}}
    if "204" in found:
        found["204"] = {"description": "The client has seen everything"}
    return found


def _problems(route: ApiRoute) -> dict[str, Any]:
    statuses = {400, 413, 422, 429, 431, *([408] if route.is_write else [])} | {
        status_of(error("example")) for error in route.errors
    }
    statuses |= set(route.refusals)
    if route.scope is not None:
        statuses |= {401, 403, 503}
    if route.body is msgspec.Raw:
        statuses |= {403}
    if route.is_write:
        statuses |= {409, 415}
    content = {PROBLEM_MEDIA: {"schema": {"$ref": REF.format(name="ProblemDetails")}}}
    return {str(status): {"description": TITLES[status], "content": content} for status in sorted(statuses)}


@cache
def encode_openapi(routes: tuple[ApiRoute, ...]) -> bytes:
    """Return the OpenAPI document as JSON."""
    return msgspec.json.encode(openapi_document(routes))
