"""Who may use the API: keys without the keys, and bytes that all hosts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Millis


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key to the API, without the key: only who has it can show it."""

    id: str
    digest: str
    """SHA-256 of the key, hexadecimal."""
    name: str
    """Whoever uses it is called so."""
    scopes: list[str]
    groups: list[str] = []
    """``role:ops``, ``team:sales``: what it may answer questions as."""
    tenant: str = ""
    created_at: Millis
    expires_at: Millis | None = None
    revoked_at: Millis | None = None


class Access(Protocol):
    """Who may do what through the API."""

    async def add(self, key: ApiKey) -> None:
        """Keep a key. Raises Conflict if its id or digest is there."""
        ...

    async def find(self, digest: str) -> ApiKey | None:
        """The key of this digest, also if its time is over or it was revoked."""
        ...

    async def keys(self) -> Sequence[ApiKey]:
        """All that were ever made, oldest first."""
        ...

    async def revoke(self, id: str, *, now: Millis) -> bool:
        """Let a key open nothing any more; it stays revoked as of the first time. False: there is none."""
        ...

    async def is_open(self) -> bool:
        """Whether no key was ever made."""
        ...

    async def seed(self, name: str, fresh: bytes) -> bytes:
        """Random bytes that all hosts of this store share: those that came first under this name."""
        ...
