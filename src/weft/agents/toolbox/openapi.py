"""Find an operation in an OpenAPI document, and make its request of parameters. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote, urljoin

import msgspec

from weft.core.events import Effect
from weft.core.findings import did_you_mean
from weft.core.values import encode
from weft.errors import BadValue

DOCUMENT_BYTES_MAX = 4 * 1024 * 1024
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
SAFE = ("GET", "HEAD")


class ApiParameter(msgspec.Struct, frozen=True, array_like=True):
    """A parameter of an operation: where it goes."""

    name: str
    place: Literal["path", "query", "header"]
    required: bool = False


class ApiOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as it was found. A call is made with this, even if the document changes meanwhile."""

    id: str
    method: str
    url: str
    """The address, with ``{name}`` where parameters go."""
    parameters: list[ApiParameter]

    @property
    def effect(self) -> Effect:
        """What a call does."""
        return "idempotent" if self.method in SAFE else "irreversible"


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent, but for credentials."""

    url: str
    query: dict[str, Any]
    headers: dict[str, str]
    body: bytes | None


def read_document(raw: bytes) -> dict[str, Any]:
    """Read an OpenAPI document in JSON. Raises BadValue."""
    if len(raw) > DOCUMENT_BYTES_MAX:
        raise BadValue(f"The OpenAPI document has {len(raw):,} bytes; the limit is {DOCUMENT_BYTES_MAX:,}.")
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("paths"), dict):
        raise BadValue("This is no OpenAPI document in JSON: it has no paths.")
    return found


def find_operation(document: Mapping[str, Any], operation_id: str, address: str) -> ApiOperation:
    """Return the operation with this id. ``address`` is that of the document. Raises BadValue."""
    known: list[str] = []
    for path, method, item, operation in _operations(document):
        found = str(operation.get("operationId", ""))
        known.append(found)
        if found == operation_id:
            listed = [*_list(item.get("parameters")), *_list(operation.get("parameters"))]
            return ApiOperation(
                id=operation_id,
                method=method.upper(),
                url=_server(document, item, operation, address).rstrip("/") + path,
                parameters=[_parameter(document, one) for one in listed],
            )
    near = did_you_mean(operation_id, known)
    names = ", ".join(sorted(name for name in known if name)[:50]) or "none with an id"
    raise BadValue(f'There is no operation "{operation_id[:100]}". {near}'.strip(), hint=f"There are: {names}.")


def make_request(operation: ApiOperation, params: Mapping[str, Any]) -> ApiRequest:
    """Put parameters where the operation has them; the rest is the body. Raises BadValue."""
    rest, url = dict(params), operation.url
    query: dict[str, Any] = {}
    headers: dict[str, str] = {}
    for one in operation.parameters:
        if one.name not in rest:
            if one.required:
                raise BadValue(f"{operation.id} needs the parameter {one.name}.")
            continue
        value = rest.pop(one.name)
        if one.place == "query":
            query[one.name] = value
        elif one.place == "header":
            headers[one.name.lower()] = _parameter_text(value)
        else:
            url = url.replace(f"{{{one.name}}}", quote(_parameter_text(value), safe=""))
    if "{" in url:
        raise BadValue(f"{operation.id} has a path with parameters that it does not declare.")
    if rest and operation.method in SAFE:
        raise BadValue(f"{operation.id} has no parameter {next(iter(rest))}.")
    body = encode(rest, what=f"{operation.id} got") if rest else None
    return ApiRequest(url=url, query=query, headers=headers, body=body)


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    for path, item in document["paths"].items():
        for method in METHODS if isinstance(item, dict) else ():
            operation = item.get(method)
            if isinstance(operation, dict):
                yield path, method, item, operation


def _parameter(document: Mapping[str, Any], given: Any) -> ApiParameter:
    if isinstance(given, dict) and "$ref" in given:
        kind, _, called = str(given["$ref"]).removeprefix("#/components/").partition("/")
        components = document.get("components")
        group = components.get(kind) if isinstance(components, dict) else None
        given = group.get(called) if isinstance(group, dict) else None
    found = given if isinstance(given, dict) else {}
    place = found.get("in")
    try:
        return msgspec.convert([found.get("name"), place, bool(found.get("required")) or place == "path"], ApiParameter)
    except msgspec.ValidationError:
        shown = str(place)[:40] if place else "no place"
        raise BadValue(f"The operation has a parameter in {shown}, which cannot be sent.") from None


def _server(document: Mapping[str, Any], item: Mapping[str, Any], operation: Mapping[str, Any], address: str) -> str:
    """Return where an operation is. Variables have their defaults."""
    servers = next((found for part in (operation, item, document) if (found := _list(part.get("servers")))), [])
    server = servers[0] if servers and isinstance(servers[0], dict) else {}
    url = str(server.get("url", "/"))
    variables = server.get("variables")
    for name, variable in variables.items() if isinstance(variables, dict) else ():
        if isinstance(variable, dict):
            url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
    return urljoin(address, url)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parameter_text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value, what="a parameter is").decode()
