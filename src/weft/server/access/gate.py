"""Identify callers by a key or a token in ``Authorization: Bearer …``, or by the cookie of a browser that signed in.

Without keys, the server is open locally. A browser sends cookies with the requests of any page, so a request with a
cookie must come from a page of this server: with an ``Origin`` always, and without one only if it just reads.

Keys are cached for a second, except that a process knows the changes that were made through it. So a key that was
revoked elsewhere works for up to a second longer, and an open server closes within a second after the first key was
created elsewhere. It never becomes open again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from weft.cache import BoundedCache
from weft.core.ids import Millis
from weft.ports.access import Access, ApiKey
from weft.ports.clock import Clock
from weft.ports.web_sessions import SessionOwner, WebSession
from weft.runtime.service import RunService
from weft.server.access.keys import PREFIX, caller_of_key, key_digest
from weft.server.access.provider import IdentityProvider
from weft.server.access.sessions import COOKIE, BrowserSessions, cookie_in, identity_of_owner
from weft.server.access.tokens import Tokens
from weft.server.identity import LISTENS, Identity, LoopbackGate, refuse_forgery
from weft.server.problems import unknown_caller
from weft.server.settings import read_jwt_settings, read_oidc_settings
from weft.steps.http.client import HttpClient

CACHED_SECONDS = 1.0
KEYS_MAX = 1_000
KEY_CHARS_MAX = 200


def create_access_gate(service: Callable[[], RunService]) -> AccessGate:
    """Create the gate of a server, with the identity provider from environment variables. Raises UsageError."""
    settings, client = read_jwt_settings(), HttpClient()
    tokens = Tokens(settings, monotonic=time.monotonic, client=client) if settings is not None else None
    oidc = read_oidc_settings(settings)
    provider = IdentityProvider(oidc, tokens, client) if oidc is not None and tokens is not None else None
    sessions = BrowserSessions(lambda: (service().store.web_sessions, service().clock))
    gate = AccessGate(lambda: (service().store.access, service().clock), tokens=tokens, sessions=sessions)
    gate.provider = provider
    return gate


class AccessGate:
    """Identifies callers by keys, tokens and sessions.

    ``sources`` returns keys and clock, which exist once the app is hosted. Without ``sessions``, nobody can sign in.
    """

    def __init__(
        self,
        sources: Callable[[], tuple[Access, Clock]],
        *,
        tokens: Tokens | None = None,
        sessions: BrowserSessions | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._tokens = tokens
        self.sessions = sessions
        self.provider: IdentityProvider | None = None
        """Where people can sign in without a key, if anywhere."""
        self._monotonic = monotonic
        self._loopback = LoopbackGate()
        self._closed = tokens is not None
        self._checked_at = -CACHED_SECONDS
        self._keys: BoundedCache[str, tuple[ApiKey | None, float]] = BoundedCache(KEYS_MAX)

    async def identify(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        """Return the caller. Raises NotAllowed, RequestRefused."""
        header = headers.get("authorization")
        if header is None:
            if await self.is_open():
                return await self._loopback.identify(scope, headers)
            return await self._identify_browser(scope, headers)
        kind, _, credential = header.strip().partition(" ")
        credential = credential.strip()
        if kind.lower() != "bearer" or not credential or not credential.isascii():
            raise unknown_caller("The Authorization header must be: Bearer KEY.")
        if credential.startswith(PREFIX) or self._tokens is None:
            return await self._identify_key(credential)
        return await self._tokens.identity(credential)

    async def is_open(self) -> bool:
        """Return whether every program on this machine may do everything."""
        if self._closed:
            return False
        now = self._monotonic()
        if now - self._checked_at >= CACHED_SECONDS:
            access, _ = self._sources()
            self._closed = not await access.is_open()
            self._checked_at = now
        return not self._closed

    def forget_keys(self) -> None:
        """Ask the store again, because the keys have changed."""
        self._checked_at = self._monotonic() - CACHED_SECONDS
        self._keys = BoundedCache(KEYS_MAX)

    async def _identify_browser(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        """Return who signed in with this browser. Raises NotAllowed, RequestRefused."""
        token = cookie_in(headers, COOKIE)
        if not token or self.sessions is None:
            raise unknown_caller("This server requires a key or a token.")
        refuse_forgery(scope, headers)
        session = await self.sessions.find(token, is_request=LISTENS not in scope)
        owner = session.owner if session is not None else None
        if owner is None:
            identity = None
        elif owner.key:
            identity = await self._identity_of_digest(owner.key)
        else:
            identity = identity_of_owner(owner)
        if identity is None:
            raise unknown_caller("This session has ended.")
        return identity

    async def _identify_key(self, credential: str) -> Identity:
        valid = len(credential) <= KEY_CHARS_MAX
        identity = await self._identity_of_digest(key_digest(credential)) if valid else None
        if identity is None:
            # Unknown, revoked and expired keys get the same answer, because the difference would help an attacker.
            raise unknown_caller("This key is not valid.")
        return identity

    async def sign_in(self, key: str) -> tuple[str, WebSession]:
        """Open a session with a key. Returns the value of its cookie, and the session. Raises RequestRefused."""
        assert self.sessions is not None
        await self._identify_key(key.strip())
        return await self.sessions.open(SessionOwner(key=key_digest(key.strip())))

    async def _identity_of_digest(self, digest: str) -> Identity | None:
        access, clock = self._sources()
        key = await self._find_key(access, digest)
        return caller_of_key(key, Millis(clock.now_ms())) if key is not None else None

    async def _find_key(self, access: Access, digest: str) -> ApiKey | None:
        now = self._monotonic()
        found, until = self._keys.get(digest) or (None, now)
        if until > now:
            return found
        found = await access.find(digest)
        self._keys.put(digest, (found, now + CACHED_SECONDS))
        return found

    async def close(self) -> None:
        """Close the connection to the identity provider."""
        if self._tokens is not None:
            await self._tokens.close()
