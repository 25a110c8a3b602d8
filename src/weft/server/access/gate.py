"""Identify callers by a key or a token in ``Authorization: Bearer …``. Without keys, the server is open locally.

Keys are cached for a second. So a revoked key works for up to a second longer, and an open server closes within a
second after the first key was created. It never becomes open again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from weft.cache import BoundedCache
from weft.core.ids import Millis
from weft.ports.access import Access, ApiKey
from weft.ports.clock import Clock
from weft.runtime.service import RunService
from weft.server.access.keys import PREFIX, digest_of, identity_of
from weft.server.access.tokens import Tokens
from weft.server.identity import Identity, LoopbackGate
from weft.server.problems import unknown_caller
from weft.server.settings import read_jwt_settings

CACHED_SECONDS = 1.0
KEYS_MAX = 1_000
KEY_CHARS_MAX = 200


def create_access_gate(service: Callable[[], RunService]) -> AccessGate:
    """Create the gate of a server, with the identity provider from environment variables. Raises UsageError."""
    settings = read_jwt_settings()
    tokens = Tokens(settings, monotonic=time.monotonic) if settings is not None else None
    return AccessGate(lambda: (service().store.access, service().clock), tokens=tokens)


class AccessGate:
    """Identifies callers by keys and tokens. ``sources`` returns keys and clock, which exist once the app is hosted."""

    def __init__(
        self,
        sources: Callable[[], tuple[Access, Clock]],
        *,
        tokens: Tokens | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._tokens = tokens
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
            raise unknown_caller("This server requires a key or a token.")
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

    async def _identify_key(self, credential: str) -> Identity:
        access, clock = self._sources()
        key = await self._find_key(access, credential) if len(credential) <= KEY_CHARS_MAX else None
        identity = identity_of(key, Millis(clock.now_ms())) if key is not None else None
        if identity is None:
            # Unknown, revoked and expired keys get the same answer, because the difference would help an attacker.
            raise unknown_caller("This key is not valid.")
        return identity

    async def _find_key(self, access: Access, credential: str) -> ApiKey | None:
        digest = digest_of(credential)
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
