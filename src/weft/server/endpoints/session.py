"""Sign a browser in and out: with a key, or at an identity provider."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

from weft.errors import NotAllowed, Refused
from weft.ports.web_sessions import WebSession
from weft.server import views
from weft.server.access.gate import AccessGate
from weft.server.access.provider import SIGN_IN_SECONDS, IdentityProvider, SignIn
from weft.server.access.sessions import AGE_MS_MAX, COOKIE, cookie_in, owner_of
from weft.server.identity import Origin, page_origin, parse_origin, refuse_forgery, refuse_other_origin
from weft.server.problems import RequestRefused, unknown_caller
from weft.server.request import ApiCall, ApiReply
from weft.server.router import API
from weft.server.settings import PUBLIC_URL, public_url
from weft.server.web.base import cookie_path
from weft.tokens import ExpiredToken, InvalidToken, Signer

SIGN_IN_COOKIE: Final = "weft_sign_in"
CALLBACK: Final = f"{API}/session/callback"
BASE_FROM_CALLBACK: Final = "../../.."
"""The base of the web UI, relative to the address of the callback."""
SEED_BYTES: Final = 32
_DOT_SEGMENT: Final = r"[^?#]*/(\.|%2[Ee]){1,2}([/?#]|$)"
Next = Annotated[
    str,
    Meta(max_length=2_000, pattern=rf"^(?!/[/\\])(?!{_DOT_SEGMENT})(/[^\\\s\x00-\x1f\x7f-\x9f]*)?$(?!\n)"),
]
"""An address of the web UI below its base, such as ``/runs/order-7``. It has no ``..``, which would leave the base."""


class Cookie(NamedTuple):
    """A cookie and how long it is kept. ``Lax`` also comes along when another site leads back here."""

    name: str
    value: str
    seconds: int
    same_site: str = "Strict"


class NewSession(views.Form, frozen=True, kw_only=True):
    """The key to sign in with."""

    key: Annotated[str, Meta(min_length=1, max_length=200)]


class OpenedSession(msgspec.Struct, frozen=True):
    """A session that has begun. Its secret is in a cookie that scripts cannot read."""

    expires_at: views.Moment


class EndedSession(msgspec.Struct, frozen=True):
    """A session that has ended here."""

    sign_out: str
    """The address at which the identity provider ends its own session; empty if there is none."""


class SignInQuery(views.Form, frozen=True, kw_only=True):
    """Where to go after signing in."""

    next: Next = "/"


async def open_session(call: ApiCall) -> ApiReply:
    """Sign a browser in with a key."""
    gate = await _closed_gate(call)
    _apply_rule(refuse_other_origin, call)
    origin = page_origin(call.scope, call.headers)
    if origin is None or not origin.is_private:
        raise RequestRefused(
            403,
            "access.not_allowed",
            "A key is not accepted over plain HTTP, where others could read it.",
            hint=f"Use https. Behind a proxy with TLS, set {PUBLIC_URL} to its address.",
        )
    token, session = await gate.sign_in(call.body_as(NewSession).key)
    opened = OpenedSession(views.required_time(session.expires_at))
    return ApiReply(opened, headers={"set-cookie": _session_cookie(call, origin, token)})


async def end_session(call: ApiCall) -> ApiReply:
    """Sign a browser out, here and at the identity provider."""
    gate = await _closed_gate(call)
    _apply_rule(refuse_forgery, call)
    origin = page_origin(call.scope, call.headers)
    assert origin is not None
    session = await _end(gate, cookie_in(call.headers, COOKIE))
    url = ""
    if session is not None and not session.owner.key and gate.provider is not None:
        url = await gate.provider.sign_out_url(f"{_address(call)}/login")
    return ApiReply(EndedSession(url), headers={"set-cookie": _set_cookie(call, origin, Cookie(COOKIE, "", 0))})


async def begin_sign_in(call: ApiCall) -> ApiReply:
    """Send a browser to the identity provider."""
    provider = _provider(await _closed_gate(call))
    now_s = call.services.runs.clock.now_ms() // 1000
    redirect = f"{_address(call)}{CALLBACK}"
    url, begun = await provider.begin(redirect, call.query_as(SignInQuery).next, now_s=now_s)
    kept = (await _signer(call)).seal(begun)
    cookie = _set_cookie(call, _origin(redirect), Cookie(SIGN_IN_COOKIE, kept, SIGN_IN_SECONDS, "Lax"))
    return ApiReply(b"", 302, {"location": url, "set-cookie": cookie})


async def finish_sign_in(call: ApiCall) -> ApiReply:
    """Receive a browser that comes back from the identity provider, and sign it in."""
    gate = await _closed_gate(call)
    provider = _provider(gate)
    assert gate.sessions is not None
    try:
        # Providers add parameters of their own, so the query is not checked like others.
        answer = dict(parse_qsl(call.scope["query_string"].decode("latin-1"), max_num_fields=20))
        begun = await _begun_sign_in(call, answer.get("state", ""))
        if not answer.get("code"):
            raise unknown_caller("The identity provider did not sign the person in.")
        identity = await provider.finish(begun, answer["code"])
    except RequestRefused as refused:
        # A person sees the answer, so it is a page. The page shows the words that belong to the code.
        return ApiReply(b"", 302, {"location": f"{BASE_FROM_CALLBACK}/login?failed={refused.code}"})
    token, _ = await gate.sessions.open(owner_of(identity))
    cookie = _session_cookie(call, _origin(begun.redirect), token)
    return ApiReply(b"", 302, {"location": f"{BASE_FROM_CALLBACK}{begun.next or '/'}", "set-cookie": cookie})


def _apply_rule(rule: Callable[[Mapping[str, Any], Mapping[str, str]], None], call: ApiCall) -> None:
    """Apply a rule about the page that a request comes from. Raises RequestRefused."""
    try:
        rule(call.scope, call.headers)
    except NotAllowed as error:
        raise RequestRefused(403, error.code, error.message, hint=error.hint) from None


async def _closed_gate(call: ApiCall) -> AccessGate:
    """Return the gate of a server where people sign in. Raises Refused."""
    gate = call.services.gate
    if not isinstance(gate, AccessGate) or gate.sessions is None or await gate.is_open():
        raise Refused("Nobody signs in here: this server has no keys.", hint="Create one: weft keys create")
    return gate


def _provider(gate: AccessGate) -> IdentityProvider:
    if gate.provider is None:
        raise Refused("This server has no identity provider to sign in at.", hint="Set WEFT_OIDC_CLIENT_ID.")
    return gate.provider


async def _end(gate: AccessGate, token: str) -> WebSession | None:
    assert gate.sessions is not None
    session = await gate.sessions.find(token) if token else None
    if token:
        await gate.sessions.end(token)
    return session


async def _begun_sign_in(call: ApiCall, state: str) -> SignIn:
    """Return the sign-in that this browser began. Raises RequestRefused."""
    now_s = call.services.runs.clock.now_ms() // 1000
    try:
        begun = (await _signer(call)).open(cookie_in(call.headers, SIGN_IN_COOKIE), SignIn, now_s=now_s)
    except (InvalidToken, ExpiredToken):
        raise unknown_caller("This sign-in was not begun in this browser, or took too long.") from None
    if not secrets.compare_digest(begun.state.encode(), state.encode()):
        raise unknown_caller("This answer belongs to another sign-in.")
    return begun


async def _signer(call: ApiCall) -> Signer:
    access = call.services.runs.store.access
    return Signer(await access.seed("sign-in", secrets.token_bytes(SEED_BYTES)), "sign-in")


# --- addresses and cookies ----------------------------------------------------------------------------------------


def _address(call: ApiCall) -> str:
    """Return the address under which the browser reaches this server, with its prefix."""
    scheme = call.scope.get("scheme", "http")
    return public_url() or f"{scheme}://{call.headers.get('host', '')}{call.root}"


def _origin(url: str) -> Origin:
    origin = parse_origin(url)
    if origin is None:
        raise RequestRefused(400, "request.malformed", "The Host of the request cannot be read.")
    return origin


def _session_cookie(call: ApiCall, origin: Origin, token: str) -> str:
    return _set_cookie(call, origin, Cookie(COOKIE, token, AGE_MS_MAX // 1000))


def _set_cookie(call: ApiCall, origin: Origin, cookie: Cookie) -> str:
    """Return the header that stores a cookie for the pages of this origin, out of reach of scripts."""
    secure = "" if origin.is_local else "; Secure"
    path = cookie_path(call.scope, origin)
    rules = f"Max-Age={cookie.seconds}; Path={path}; HttpOnly; SameSite={cookie.same_site}{secure}"
    return f"{cookie.name}={cookie.value}; {rules}"
