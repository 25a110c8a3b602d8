"""API keys, stored as digests, and random bytes that all hosts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Millis


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, without its secret."""

    id: str
    digest: str
    """SHA-256 of the key, hexadecimal."""
    name: str
    """The name of its user."""
    scopes: list[str]
    groups: list[str] = []
    """Groups for which its user may answer questions, such as ``role:ops`` or ``team:sales``."""
    tenant: str = ""
    created_at: Millis
    expires_at: Millis | None = None
    revoked_at: Millis | None = None


class Access(Protocol):
    """The API keys of a store."""

    async def add(self, key: ApiKey) -> None:
        """Store a key. Raises Conflict if its id or digest already exists."""
        ...

    async def find(self, digest: str) -> ApiKey | None:
        """Return the key with this digest, even if it has expired or was revoked."""
        ...

    async def keys(self) -> Sequence[ApiKey]:
        """Return all keys that were ever made, oldest first."""
        ...

    async def revoke(self, id: str, *, now: Millis) -> bool:
        """Revoke a key. Revoking it again keeps the first time. Returns False if there is no such key."""
        ...

    async def is_open(self) -> bool:
        """Return whether no key was ever made."""
        ...

    async def seed(self, name: str, fresh: bytes) -> bytes:
        """Return random bytes that all hosts of this store share. The first value stored under a name is kept."""
        ...
