"""The gate of a server: a key or a token in ``Authorization: Bearer …``. Without keys in the store it is open locally.

Keys are cached for a second: a revoked key works for at most a second longer, and an open server is closed within a
second of the first key. It never becomes open again.
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
from weft.server.identity import Identity, OpenHere
from weft.server.problems import unknown_caller
from weft.server.settings import jwt_settings_here

CACHED_SECONDS = 1.0
KEYS_MAX = 1_000
KEY_CHARS_MAX = 200


def access_gate(service: Callable[[], RunService]) -> AccessGate:
    """Return the gate of a server, with the identity provider from environment variables. Raises UsageError."""
    settings = jwt_settings_here()
    tokens = Tokens(settings, monotonic=time.monotonic) if settings is not None else None
    return AccessGate(lambda: (service().store.access, service().clock), tokens=tokens)


class AccessGate:
    """Identifies callers by keys and tokens. ``place`` gives keys and clock, which exist once the app is hosted."""

    def __init__(
        self,
        place: Callable[[], tuple[Access, Clock]],
        *,
        tokens: Tokens | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place = place
        self._tokens = tokens
        self._monotonic = monotonic
        self._open_here = OpenHere()
        self._closed = tokens is not None
        self._looked = -CACHED_SECONDS
        self._keys: BoundedCache[str, tuple[ApiKey | None, float]] = BoundedCache(KEYS_MAX)

    async def identify(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        """Return the caller. Raises NotAllowed, RequestRefused."""
        given = headers.get("authorization")
        if given is None:
            if await self.is_open():
                return await self._open_here.identify(scope, headers)
            raise unknown_caller("This server needs a key or a token.")
        kind, _, credential = given.strip().partition(" ")
        credential = credential.strip()
        if kind.lower() != "bearer" or not credential or not credential.isascii():
            raise unknown_caller("Authorization must be: Bearer KEY.")
        if credential.startswith(PREFIX) or self._tokens is None:
            return await self._of_key(credential)
        return await self._tokens.identity(credential)

    async def is_open(self) -> bool:
        """Return whether every program on this machine may do everything."""
        if self._closed:
            return False
        now = self._monotonic()
        if now - self._looked >= CACHED_SECONDS:
            access, _ = self._place()
            self._closed = not await access.is_open()
            self._looked = now
        return not self._closed

    async def _of_key(self, credential: str) -> Identity:
        access, clock = self._place()
        key = await self._known(access, credential) if len(credential) <= KEY_CHARS_MAX else None
        identity = identity_of(key, Millis(clock.now_ms())) if key is not None else None
        if identity is None:
            # Unknown, revoked and expired keys get the same answer: the difference would only help an attacker.
            raise unknown_caller("This key is not valid.")
        return identity

    async def _known(self, access: Access, credential: str) -> ApiKey | None:
        digest = digest_of(credential)
        now = self._monotonic()
        found, until = self._keys.get(digest) or (None, now)
        if until > now:
            return found
        found = await access.find(digest)
        self._keys.put(digest, (found, now + CACHED_SECONDS))
        return found

    async def close(self) -> None:
        if self._tokens is not None:
            await self._tokens.close()
