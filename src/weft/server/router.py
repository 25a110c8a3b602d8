"""Routes as data, and the router that finds them. The OpenAPI document is generated from the same routes.

Paths are matched as they were sent: each segment is decoded separately, so ids may contain encoded slashes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from weft.errors import WeftError
from weft.server.identity import AccessScope
from weft.server.problems import RequestRefused

API = "/api/v1"
Kind = Literal["answer", "live", "wait", "file", "health", "protocol"]


class ApiRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of the API.

    An *answer* is JSON at once. A *wait* is JSON that may wait for something. A *live* route is a stream while the
    client listens, also as a WebSocket. A *file* is not JSON. A *health* route is JSON and never refused as busy. A
    *protocol* route answers by itself: its endpoint also takes the rest of the request and sends the response.
    """

    name: str
    method: str
    path: str
    summary: str
    endpoint: Callable[..., Awaitable[Any]]
    scope: AccessScope | None
    """The scope that the caller needs; None if it needs no identity."""
    anonymous: bool = False
    """Whether callers without credentials are answered too. They get the identity ``NOBODY``."""
    operator_only: bool = False
    """Whether it concerns all tenants, so that callers of a single tenant may not use it."""
    query: type[msgspec.Struct] | None = None
    any_query: bool = False
    """Whether parameters are ignored instead of refused: those of a screen are read in the browser."""
    body: type[msgspec.Struct | msgspec.Raw] | None = None
    """The type of the body. A ``Raw`` body is passed on as it was sent, because it is signed."""
    answer: Any = None
    dry_answer: Any = None
    """The answer with status 200 to a body with ``dry_run``, if that is another one."""
    statuses: tuple[int, ...] = (200,)
    errors: tuple[type[WeftError], ...] = ()
    refusals: tuple[int, ...] = ()
    """Statuses of problems beside those of ``errors`` and of every route."""
    kind: Kind = "answer"
    media: str = "application/json"
    takes: str = "application/json"
    """The media type of the body of a request."""

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def parameters(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


class _PathNode:
    """A node of the tree of paths."""

    __slots__ = ("below", "methods", "name", "parameter")

    def __init__(self) -> None:
        self.below: dict[str, _PathNode] = {}
        self.parameter: _PathNode | None = None
        self.name = ""
        self.methods: dict[str, ApiRoute] = {}


class RouteMatch(msgspec.Struct, frozen=True):
    """A route with the parameters from the path."""

    route: ApiRoute
    parameters: dict[str, str]


class Router:
    """Finds the route for a request."""

    def __init__(self, routes: Sequence[ApiRoute]) -> None:
        self._root = _PathNode()
        self._static = {
            (route.method, route.path.encode()): RouteMatch(route, {}) for route in routes if "{" not in route.path
        }
        """Routes without parameters."""
        for route in routes:
            self._add(route)

    def _add(self, route: ApiRoute) -> None:
        node = self._root
        for part in route.path.strip("/").split("/"):
            if part.startswith("{"):
                node.parameter = node.parameter or _PathNode()
                node = node.parameter
                node.name = part[1:-1]
            else:
                node = node.below.setdefault(part, _PathNode())
        assert route.method not in node.methods, f"{route.method} {route.path} is in the table twice"
        node.methods[route.method] = route

    def find(self, method: str, raw_path: bytes) -> RouteMatch:
        """Return the route of a request. Raises RequestRefused if there is none for this path and method."""
        static = self._static.get((method, raw_path))
        if static is not None:
            return static
        node = self._root
        parameters: dict[str, str] = {}
        for segment in raw_path.strip(b"/").split(b"/"):
            text = _decode(segment)
            below = node.below.get(text)
            if below is None:
                below = node.parameter
                if below is None or not text:
                    raise _unknown_path()
                parameters[below.name] = text
            node = below
        route = node.methods.get("GET" if method == "HEAD" else method)
        if route is not None:
            return RouteMatch(route, parameters)
        if not node.methods:
            raise _unknown_path()
        refused = RequestRefused(405, "request.wrong_method", f"{method} is not possible at this path.")
        refused.allow = ", ".join(sorted(node.methods))
        raise refused


def _decode(segment: bytes) -> str:
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise RequestRefused(400, "request.malformed", "The path is not UTF-8.") from None


def _unknown_path() -> RequestRefused:
    return RequestRefused(
        404, "request.unknown_route", "There is nothing at this path.", hint="See /openapi.json for all paths."
    )
