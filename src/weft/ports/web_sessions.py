"""Sessions of browsers that have signed in, stored as digests."""

from __future__ import annotations

from typing import Protocol

import msgspec

from weft.core.ids import Millis


class SessionOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Who has signed in. With an API key, the key says what they may do; otherwise the identity provider said it."""

    key: str = ""
    """The digest of the API key; empty if an identity provider knows the person."""
    name: str = ""
    scopes: list[str] = []
    groups: list[str] = []
    tenant: str = ""


class WebSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session, without its secret."""

    digest: str
    """SHA-256 of the cookie, hexadecimal."""
    owner: SessionOwner
    created_at: Millis
    seen_at: Millis
    """When it was last used, to the minute."""
    expires_at: Millis


class WebSessions(Protocol):
    """The sessions of a store."""

    async def add(self, session: WebSession) -> None:
        """Store a session, and delete those that had expired when it was created."""
        ...

    async def find(self, digest: str) -> WebSession | None:
        """Return the session with this digest, even if it has expired."""
        ...

    async def touch(self, digest: str, *, now: Millis) -> None:
        """Record that a session was used. Does nothing if it has ended."""
        ...

    async def end(self, digest: str) -> bool:
        """Delete a session. Returns False if there is no such session."""
        ...
