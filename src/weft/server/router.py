"""Routes as data, and the router. The OpenAPI document and the table of scopes are made from the same routes.

Paths are matched as they were sent: each segment is decoded by itself, so ids may contain encoded slashes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from weft.errors import WeftError
from weft.server.identity import AccessScope
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall

API = "/api/v1"
Kind = Literal["answer", "live", "wait", "file", "health"]


class ApiRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of the API.

    ``kind``: *answer* is JSON at once; *wait* is JSON that may wait for something; *live* is a stream while the client
    listens (also as a WebSocket); *file* is not JSON; *health* is JSON that is never refused for lack of room.
    """

    name: str
    method: str
    path: str
    summary: str
    endpoint: Callable[[ApiCall], Awaitable[Any]]
    scope: AccessScope | None
    """The scope that the caller needs. None: no identity is needed."""
    whole: bool = False
    """It concerns all tenants, so callers that belong to one may not use it."""
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct | msgspec.Raw] | None = None
    """The type of the body. Raw: it is passed on as it was sent, because it is signed."""
    answer: Any = None
    statuses: tuple[int, ...] = (200,)
    errors: tuple[type[WeftError], ...] = ()
    kind: Kind = "answer"
    media: str = "application/json"
    takes: str = "application/json"
    """The media type of its body."""

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def parameters(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


class _Place:
    """A node of the tree of paths."""

    __slots__ = ("below", "methods", "name", "parameter")

    def __init__(self) -> None:
        self.below: dict[str, _Place] = {}
        self.parameter: _Place | None = None
        self.name = ""
        self.methods: dict[str, ApiRoute] = {}


class Found(msgspec.Struct, frozen=True):
    """A route with the parameters from the path."""

    route: ApiRoute
    parameters: dict[str, str]


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: Sequence[ApiRoute]) -> None:
        self._root = _Place()
        self._plain = {
            (route.method, route.path.encode()): Found(route, {}) for route in routes if "{" not in route.path
        }
        """Routes without parameters."""
        for route in routes:
            self._add(route)

    def _add(self, route: ApiRoute) -> None:
        place = self._root
        for part in route.path.strip("/").split("/"):
            if part.startswith("{"):
                place.parameter = place.parameter or _Place()
                place = place.parameter
                place.name = part[1:-1]
            else:
                place = place.below.setdefault(part, _Place())
        assert route.method not in place.methods, f"{route.method} {route.path} stands twice in the table"
        place.methods[route.method] = route

    def find(self, method: str, raw_path: bytes) -> Found:
        """Return the route of a request. Raises RequestRefused if there is none for this path and method."""
        plain = self._plain.get((method, raw_path))
        if plain is not None:
            return plain
        place = self._root
        parameters: dict[str, str] = {}
        for segment in raw_path.strip(b"/").split(b"/"):
            text = _decoded(segment)
            below = place.below.get(text)
            if below is None:
                below = place.parameter
                if below is None or not text:
                    raise _unknown_path()
                parameters[below.name] = text
            place = below
        route = place.methods.get("GET" if method == "HEAD" else method)
        if route is not None:
            return Found(route, parameters)
        if not place.methods:
            raise _unknown_path()
        refused = RequestRefused(405, "request.wrong_method", f"{method} is not possible here.")
        refused.allow = ", ".join(sorted(place.methods))
        raise refused


def _decoded(segment: bytes) -> str:
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise RequestRefused(400, "request.malformed", "The path is not UTF-8.") from None


def _unknown_path() -> RequestRefused:
    return RequestRefused(404, "request.unknown_route", "There is nothing at this path.", hint="/openapi.json has all.")
