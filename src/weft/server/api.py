"""The ASGI application. It checks limits, identifies the caller, runs the endpoint and translates errors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, MutableMapping
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from weft.errors import NotAllowed, WeftError
from weft.runtime.service import RunService
from weft.server.asgi import AsgiScope, Receive, Send
from weft.server.hosted_app import Hosted
from weft.server.identity import LISTENS, NOBODY, Gate, Identity
from weft.server.limits import BodyReader, RequestLimits, RequestSlots, check_json
from weft.server.live.frames import Batches
from weft.server.live.transports import NORMAL, POLICY_VIOLATION, send_events, send_messages
from weft.server.logs import RUN_ID
from weft.server.openapi import PROBLEM_MEDIA, encode_openapi
from weft.server.problems import RETRY_AFTER_SECONDS, ProblemDetails, RequestRefused, problem, problem_of
from weft.server.request import (
    FORM_TYPE,
    ApiCall,
    ApiReply,
    check_text,
    read_form,
    read_headers,
    read_idempotency_key,
    read_json,
    read_query,
    request_path,
)
from weft.server.route_table import ROUTES
from weft.server.router import ApiRoute, RouteMatch, Router
from weft.server.screen_routes import screen_routes
from weft.server.services import Services
from weft.server.web.files import WebFiles

log = logging.getLogger("weft.api")

UNEXPECTED = 1011
_encode = msgspec.json.Encoder().encode
_NOSNIFF = (b"x-content-type-options", b"nosniff")
_NO_STORE = (b"cache-control", b"no-store")


class Api:
    """The ASGI application of an app (``app.router``). Mount it, or let ``weft serve`` run it."""

    def __init__(
        self,
        hosted: Hosted,
        runs: Callable[[], RunService],
        *,
        gate: Gate | None = None,
        limits: RequestLimits | None = None,
        web: WebFiles | None = None,
        without_host: bool = False,
    ) -> None:
        """``runs`` returns the service for the runs of the app, or raises NotRunning.

        ``web`` replaces the installed web UI, and ``without_host`` serves a store in a process that hosts nothing.
        """
        document = partial(encode_openapi, ROUTES)
        services = self.services = Services(
            hosted, runs, document, gate=gate, limits=limits, web=web, without_host=without_host
        )
        self._router = Router(ROUTES)
        self._screens = Router(screen_routes(services.web))
        self._bodies = BodyReader(services.limits)
        self._requests = RequestSlots(services.limits.in_flight, "requests")
        self._listeners = RequestSlots(
            services.limits.live, "clients that listen or wait", services.telemetry.count_listeners
        )

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            # The lifespan belongs to the application that hosts the engine.
            raise RuntimeError(f"the API serves requests and WebSockets, not {scope['type']}")

    # --- requests -------------------------------------------------------------------------------------------------

    async def _http(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        name, waits, status, tenant = "none", False, 500, ""
        try:
            match = self._match(scope["method"], scope)
            name, waits = match.route.name, match.route.kind in ("wait", "live")
            token = RUN_ID.set(match.parameters.get("id", "")) if "/runs/" in match.route.path else None
            try:
                call = await self._call(match, scope)
                tenant = call.identity.tenant
                status = await self._answer(match.route, call, receive, send)
            finally:
                if token is not None:
                    RUN_ID.reset(token)
        except RequestRefused as refused:
            status = refused.status
            await _send_problem(send, problem(status, refused.code, refused.detail, hint=refused.hint), refused)
        except WeftError as error:
            details = problem_of(error, tenant)
            status = details.status
            if status >= 500:
                log.warning("%s %s: %s", scope["method"], name, error)
            await _send_problem(send, details, retry_after=error.context.get("retry_after"))
        except Exception:
            log.exception("%s %s failed", scope["method"], name)
            await _send_problem(
                send, problem(500, "weft.error", "An error inside Weft. The log of the server has more.")
            )
        finally:
            seconds = time.perf_counter() - began
            self.services.telemetry.count_request(name, status, None if waits else seconds)
            if log.isEnabledFor(logging.DEBUG):
                log.debug("%s %s %d", scope["method"], name, status, extra={"ms": round(seconds * 1000, 2)})

    def _match(self, method: str, scope: AsgiScope) -> RouteMatch:
        limits = self.services.limits
        headers = scope["headers"]
        if len(headers) > limits.headers or sum(map(len, chain.from_iterable(headers))) > limits.header_bytes:
            raise RequestRefused(
                431,
                "limit.exceeded",
                f"More than {limits.headers} headers, or more than {limits.header_bytes:,} bytes.",
            )
        if len(scope["query_string"]) > limits.query_bytes:
            raise RequestRefused(413, "limit.exceeded", f"The query has more than {limits.query_bytes:,} bytes.")
        path = request_path(scope)
        if len(path) > limits.path_bytes:
            raise RequestRefused(413, "limit.exceeded", f"The path has more than {limits.path_bytes:,} bytes.")
        match = self._find(method, path)
        for name, value in match.parameters.items():
            if len(value) > limits.parameter_chars:
                what = f"The {name} in the path has more than {limits.parameter_chars:,} characters."
                raise RequestRefused(413, "limit.exceeded", what)
            check_text(value, f"The {name} in the path")
        return match

    def _find(self, method: str, path: bytes) -> RouteMatch:
        """Return the route of the API or, if it has none, that of the web UI. Raises RequestRefused."""
        try:
            return self._router.find(method, path)
        except RequestRefused as refused:
            if refused.status != 404 or method not in ("GET", "HEAD"):
                raise
        return self._screens.find(method, path)

    async def _answer(self, route: ApiRoute, call: ApiCall, receive: Receive, send: Send) -> int:
        if route.kind == "live":
            with self._listeners.slot(call.caller):
                batches = await route.endpoint(call)
                if not isinstance(batches, ApiReply):
                    await send_events(receive, send, batches, partial(self._may_listen, route, call))
                    return 200
            await send({"type": "http.response.start", "status": batches.status, "headers": [_NO_STORE]})
            await send({"type": "http.response.body", "body": b""})
            return batches.status
        if route.is_write:
            await self._read(route, call, receive)
        if route.kind == "protocol":
            with self._listeners.slot(call.caller):
                return await _converse(route, call, receive, send)
        if route.kind == "health":
            answer = await route.endpoint(call)
        else:
            slots = self._listeners if route.kind == "wait" else self._requests
            with slots.slot(call.caller):
                self.services.note_call()
                answer = await route.endpoint(call)
        reply = answer if isinstance(answer, ApiReply) else ApiReply(answer, route.statuses[0])
        await _send(send, reply, route.media)
        return reply.status

    async def _call(self, match: RouteMatch, scope: AsgiScope) -> ApiCall:
        """Read a request, except for its body. Raises RequestRefused if the caller may not make it."""
        services = self.services
        headers = read_headers(scope)
        identity = await self._identity(match.route, scope, headers)
        if match.route.kind != "health":
            await services.rates.take(identity.name)
        return ApiCall(
            services=services,
            identity=identity,
            parameters=match.parameters,
            query=None if match.route.any_query else read_query(scope["query_string"], match.route.query),
            scope=scope,
            root=scope.get("root_path", ""),
            headers=headers,
            address=(scope.get("client") or ("",))[0],
        )

    async def _identity(self, route: ApiRoute, scope: AsgiScope, headers: Mapping[str, str]) -> Identity:
        """Identify the caller and check its scope. Raises RequestRefused."""
        if route.scope is None:
            return NOBODY
        try:
            identity = await self.services.gate.identify(scope, headers)
        except RequestRefused as refused:
            if not route.anonymous or refused.status != 401 or "authorization" in headers:
                raise
            return NOBODY
        except NotAllowed as error:
            raise RequestRefused(403, error.code, error.message, hint=error.hint) from None
        if not identity.may(route.scope):
            what, hint = f"This needs the scope {route.scope}.", "Use a key with this scope."
            raise RequestRefused(403, NotAllowed.code, what, hint=hint)
        if route.operator_only and identity.tenant:
            what, hint = "This concerns all tenants.", "Use an operator's key, which has no tenant."
            raise RequestRefused(403, NotAllowed.code, what, hint=hint)
        return identity

    async def _may_listen(self, route: ApiRoute, call: ApiCall) -> bool:
        """Return whether the caller of an open live connection is still who it was, with the same rights."""
        try:
            return await self._identity(route, {**call.scope, LISTENS: True}, call.headers) == call.identity
        except RequestRefused as refused:
            return refused.status not in (401, 403)
        except WeftError as error:
            # A store that cannot be reached does not refuse the caller. It is asked again.
            log.warning("the caller of %s could not be identified again: %s", route.name, error)
            return True
        except Exception:
            log.exception("the caller of %s could not be identified again", route.name)
            return False

    async def _read(self, route: ApiRoute, call: ApiCall, receive: Receive) -> None:
        limits = self.services.limits
        call.key = read_idempotency_key(call.headers)
        raw = await self._bodies.read(receive, call.headers.get("content-length"))
        assert route.body is not None
        if issubclass(route.body, msgspec.Raw):
            if route.kind == "protocol":
                check_json(raw, limits)
            call.body = msgspec.Raw(raw)
        elif route.takes == FORM_TYPE:
            call.body = read_form(raw, route.body, call.headers)
        else:
            check_json(raw, limits)
            call.body = read_json(raw, route.body, call.headers)

    # --- sockets --------------------------------------------------------------------------------------------------

    async def _batches(self, match: RouteMatch, call: ApiCall) -> Batches:
        if match.route.kind != "live":
            raise RequestRefused(404, "request.unknown_route", "There is no WebSocket at this path.")
        batches: Batches | ApiReply = await match.route.endpoint(call)
        return _empty_batches() if isinstance(batches, ApiReply) else batches

    async def _socket(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve a live route over a WebSocket. Accepts it only if the same GET request would be accepted."""
        assert (await receive())["type"] == "websocket.connect"
        name, code = "none", NORMAL
        try:
            match = self._match("GET", scope)
            name = match.route.name
            call = await self._call(match, scope)
            batches = await self._batches(match, call)
            with self._listeners.slot(call.caller):
                await send_messages(receive, send, batches, partial(self._may_listen, match.route, call))
        except (RequestRefused, WeftError) as error:
            code = POLICY_VIOLATION
            await send({"type": "websocket.close", "code": code, "reason": str(error)[:120]})
        except Exception:
            log.exception("weft: the WebSocket %s failed", name)
            code = UNEXPECTED
            await send({"type": "websocket.close", "code": code, "reason": "an error in Weft itself"})
        finally:
            self.services.telemetry.count_request(name, code, None)


async def _converse(route: ApiRoute, call: ApiCall, receive: Receive, send: Send) -> int:
    """Let a protocol route answer a request whose body was read. Returns the status of the response."""
    status = 500
    raw: bytes | None = bytes(call.body) if isinstance(call.body, msgspec.Raw) else b""

    async def receive_again() -> MutableMapping[str, Any]:
        nonlocal raw
        if raw is None:
            return await receive()
        body, raw = raw, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send_noted(message: MutableMapping[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            message = {**message, "headers": [*message["headers"], _NOSNIFF]}
        await send(message)

    await route.endpoint(call, receive_again, send_noted)
    return status


async def _empty_batches() -> Batches:
    """Yield an empty batch and end."""
    yield []


async def _send(send: Send, reply: ApiReply, media: str) -> None:
    body = reply.body if isinstance(reply.body, bytes) else _encode(reply.body)
    own = reply.headers
    headers = [(b"content-length", b"%d" % len(body)), _NOSNIFF]
    if "content-type" not in own:
        headers.append((b"content-type", media.encode()))
    if "cache-control" not in own:
        headers.append(_NO_STORE)
    for name, value in own.items():
        headers.append((name.encode(), value.encode()))  # faster than a generator here
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_problem(
    send: Send, details: ProblemDetails, refused: RequestRefused | None = None, *, retry_after: object = None
) -> None:
    headers: dict[str, str] = {"www-authenticate": "Bearer"} if details.status == 401 else {}
    if details.status == 408:
        headers["connection"] = "close"  # the rest of the body would be read as the next request
    if refused is not None and refused.allow:
        headers["allow"] = refused.allow
    if refused is not None and refused.retry_after is not None:
        headers["retry-after"] = str(refused.retry_after)
    elif details.status in (429, 503):
        headers["retry-after"] = str(retry_after or RETRY_AFTER_SECONDS)
    await _send(send, ApiReply(details, details.status, headers), PROBLEM_MEDIA)
