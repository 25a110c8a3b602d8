"""Sign people in at an identity provider: OpenID Connect, authorisation code with PKCE.

The server does all of it, so the browser never holds a token. On the way to the provider and back, the browser carries
what the server needs to continue, signed, in a cookie of ten minutes. The access token says what the person may do, as
for every caller of the API; the ID token proves that it was made for this sign-in.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Final, TypeVar
from urllib.parse import urlencode

import msgspec

from weft.errors import WeftError
from weft.server.access.tokens import Tokens
from weft.server.identity import Identity
from weft.server.problems import RequestRefused, unknown_caller
from weft.server.settings import OidcSettings
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpRequest

DISCOVERY: Final = "/.well-known/openid-configuration"
SIGN_IN_SECONDS: Final = 600
TIMEOUT_MS: Final = 10_000
RANDOM_BYTES: Final = 32
Document = TypeVar("Document", bound=msgspec.Struct)


class SignIn(msgspec.Struct, frozen=True, array_like=True):
    """A sign-in that has begun: what the answer of the provider must fit, and where the person wants to go."""

    state: str
    verifier: str
    nonce: str
    redirect: str
    """The address to which the provider sends the browser back."""
    next: str
    """The address of the web UI, below its base, to show in the end."""
    until_s: int


class _Discovered(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    end_session_endpoint: str = ""


class _Granted(msgspec.Struct, frozen=True):
    access_token: str
    id_token: str


class IdentityProvider:
    """One OpenID provider. Its addresses are asked for once."""

    def __init__(self, settings: OidcSettings, tokens: Tokens, client: HttpClient) -> None:
        self._settings = settings
        self._tokens = tokens
        self._client = client
        self._found: _Discovered | None = None

    async def begin(self, redirect: str, next: str, *, now_s: int) -> tuple[str, SignIn]:
        """Begin a sign-in. Returns the address at the provider, and what must be kept. Raises RequestRefused."""
        found = await self._discover()
        state, verifier, nonce = (secrets.token_urlsafe(RANDOM_BYTES) for _ in range(3))
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect,
            "scope": self._settings.scope,
            "audience": self._settings.audience,
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        begun = SignIn(state, verifier, nonce, redirect, next, now_s + SIGN_IN_SECONDS)
        return _with_query(found.authorization_endpoint, query), begun

    async def finish(self, begun: SignIn, code: str) -> Identity:
        """Exchange the code for tokens. Returns the person. Raises RequestRefused."""
        found = await self._discover()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": begun.redirect,
            "client_id": self._settings.client_id,
            "code_verifier": begun.verifier,
        }
        if self._settings.client_secret:
            form["client_secret"] = self._settings.client_secret
        raw = await self._ask(
            HttpRequest(
                method="POST",
                url=found.token_endpoint,
                headers={"content-type": "application/x-www-form-urlencoded", "accept": "application/json"},
                body=urlencode(form).encode(),
                timeout_ms=TIMEOUT_MS,
            )
        )
        granted = _decode(raw, _Granted)
        told = await self._tokens.claims(granted.id_token, self._settings.client_id)
        if told.get("nonce") != begun.nonce:
            raise unknown_caller("The ID token was not made for this sign-in.")
        allowed = await self._tokens.claims(granted.access_token, self._settings.audience)
        if allowed.get("sub") != told.get("sub"):
            raise unknown_caller("The access token and the ID token are of different people.")
        return self._tokens.identity_of(allowed)

    async def sign_out_url(self, back: str) -> str:
        """Return the address at which the provider ends its own session; empty if it has none."""
        try:
            found = await self._discover()
        except RequestRefused:
            return ""
        query = {"client_id": self._settings.client_id, "post_logout_redirect_uri": back}
        return _with_query(found.end_session_endpoint, query) if found.end_session_endpoint else ""

    async def _discover(self) -> _Discovered:
        if self._found is None:
            issuer = self._settings.issuer
            url = issuer.rstrip("/") + DISCOVERY
            found = _decode(await self._ask(HttpRequest(method="GET", url=url, timeout_ms=TIMEOUT_MS)), _Discovered)
            if found.issuer != issuer:
                raise _unusable(f"{url} is the document of another issuer, {found.issuer[:200]!r}.")
            self._found = found
        return self._found

    async def _ask(self, request: HttpRequest) -> bytes:
        try:
            answer = await self._client.send(request)
        except WeftError as error:
            raise _unusable(error.message) from None
        if not answer.ok:
            raise _unusable(f"{request.shown()} answered {answer.status}: {answer.body[:200].decode(errors='replace')}")
        return answer.body


def _decode(raw: bytes, of: type[Document]) -> Document:
    try:
        return msgspec.json.decode(raw, type=of)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unusable(f"Its answer cannot be read: {error}") from None


def _unusable(detail: str) -> RequestRefused:
    return RequestRefused(
        503, "access.provider", f"The identity provider could not be used. {detail}", hint="Try again, or use a key."
    )


def _with_query(url: str, query: dict[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"
