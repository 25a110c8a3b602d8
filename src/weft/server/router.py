"""The route table: every route is data, from which the router, the OpenAPI document and the matrix of rights derive.

Paths are matched as they were sent: each segment is decoded by itself, so that ids may contain slashes.
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
    """One thing that can be asked for.

    ``kind``: *answer* is JSON at once, *wait* may take its time before it is JSON, *live* goes on for as long as the
    client listens (and is a WebSocket too), *file* is something else than JSON, *health* is JSON that is never refused
    for lack of room.
    """

    name: str
    method: str
    path: str
    summary: str
    endpoint: Callable[[ApiCall], Awaitable[Any]]
    scope: AccessScope | None
    """What the caller needs; None: nothing, not even an identity."""
    whole: bool = False
    """It is about the whole installation, so it is not for callers that belong to a tenant."""
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct | msgspec.Raw] | None = None
    """What is read from it; Raw: nothing, it is taken as it was sent, because it is signed."""
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
    """A route and the parts of the path that it names."""

    route: ApiRoute
    parameters: dict[str, str]


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: Sequence[ApiRoute]) -> None:
        self._root = _Place()
        self._plain = {
            (route.method, route.path.encode()): Found(route, {}) for route in routes if "{" not in route.path
        }
        """Those that name nothing in their paths are found at once."""
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
        """The route. Raises RequestRefused: no such path, or none for this method."""
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
                    raise _nowhere()
                parameters[below.name] = text
            place = below
        route = place.methods.get("GET" if method == "HEAD" else method)
        if route is not None:
            return Found(route, parameters)
        if not place.methods:
            raise _nowhere()
        refused = RequestRefused(405, "request.wrong_method", f"{method} is not possible here.")
        refused.allow = ", ".join(sorted(place.methods))
        raise refused


def _decoded(segment: bytes) -> str:
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise RequestRefused(400, "request.malformed", "The path is not UTF-8.") from None


def _nowhere() -> RequestRefused:
    return RequestRefused(404, "request.unknown_route", "There is nothing at this path.", hint="/openapi.json has all.")
