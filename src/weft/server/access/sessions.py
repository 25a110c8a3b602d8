"""Sessions of browsers. A cookie holds 256 random bits; the store has their digest and who signed in.

A session ends twelve hours after signing in, or after two hours without a request. One that was opened with a key ends
with the key. What is known of a session is cached for a second, as for keys.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from weft.cache import BoundedCache
from weft.core.ids import Millis
from weft.ports.clock import Clock
from weft.ports.web_sessions import SessionOwner, WebSession, WebSessions
from weft.server.access.keys import key_digest
from weft.server.identity import AccessScope, Identity

COOKIE: Final = "weft_session"
TOKEN_BYTES: Final = 32
TOKEN_CHARS_MAX: Final = 100
AGE_MS_MAX: Final = 12 * 3_600_000
IDLE_MS_MAX: Final = 2 * 3_600_000
TOUCH_MS: Final = 60_000
"""How often the last use of a session is written."""
CACHED_SECONDS: Final = 1.0
SESSIONS_MAX: Final = 1_000


class BrowserSessions:
    """Opens, finds and ends sessions. ``sources`` returns their store and clock, which exist once the app is hosted."""

    def __init__(
        self,
        sources: Callable[[], tuple[WebSessions, Clock]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._monotonic = monotonic
        self._cache: BoundedCache[str, tuple[WebSession | None, float]] = BoundedCache(SESSIONS_MAX)

    async def open(self, owner: SessionOwner) -> tuple[str, WebSession]:
        """Open a session. Returns the value of its cookie, and the session."""
        store, clock = self._sources()
        token, now = secrets.token_urlsafe(TOKEN_BYTES), clock.now_ms()
        session = WebSession(
            digest=key_digest(token),
            owner=owner,
            created_at=now,
            seen_at=now,
            expires_at=Millis(now + AGE_MS_MAX),
        )
        await store.add(session)
        return token, session

    async def find(self, token: str, *, is_request: bool = True) -> WebSession | None:
        """Return the session of a cookie; None if there is none or it has ended. A request keeps it from ending."""
        if len(token) > TOKEN_CHARS_MAX:
            return None
        store, clock = self._sources()
        session = await self._known(store, key_digest(token))
        now = clock.now_ms()
        if session is None or now >= session.expires_at or now - session.seen_at >= IDLE_MS_MAX:
            return None
        if is_request and now - session.seen_at >= TOUCH_MS:
            await store.touch(session.digest, now=now)
            self._keep(session.digest, msgspec.structs.replace(session, seen_at=now))
        return session

    async def end(self, token: str) -> None:
        """End a session."""
        store, _ = self._sources()
        digest = key_digest(token[:TOKEN_CHARS_MAX])
        await store.end(digest)
        self._keep(digest, None)

    async def _known(self, store: WebSessions, digest: str) -> WebSession | None:
        found, until = self._cache.get(digest) or (None, 0.0)
        if until <= self._monotonic():
            found = await store.find(digest)
            self._keep(digest, found)
        return found

    def _keep(self, digest: str, session: WebSession | None) -> None:
        self._cache.put(digest, (session, self._monotonic() + CACHED_SECONDS))


def owner_of(identity: Identity) -> SessionOwner:
    """Return a person whom an identity provider knows, as the owner of a session."""
    return SessionOwner(
        name=identity.subject,
        scopes=sorted(identity.scopes),
        groups=sorted(identity.groups or ()),
        tenant=identity.tenant,
    )


def identity_of_owner(owner: SessionOwner) -> Identity:
    """Return the caller whom ``owner_of`` described."""
    scopes = frozenset(AccessScope(scope) for scope in owner.scopes if scope in list(AccessScope))
    return Identity(owner.name, scopes, owner.tenant, frozenset(owner.groups))


def cookie_in(headers: Mapping[str, str], name: str) -> str:
    """Return the value of a cookie; empty if the request does not have it."""
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""
