"""API keys in memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core.ids import Millis
from weft.errors import Conflict
from weft.ports.access import ApiKey
from weft.stores.memory.content import MemoryContent


class MemoryAccess:
    """The API keys of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def add(self, key: ApiKey) -> None:
        known = self._content.api_keys
        if key.id in known or any(one.digest == key.digest for one in known.values()):
            raise Conflict(f"An API key with the id {key.id} or the same digest already exists.")
        known[key.id] = key

    async def find(self, digest: str) -> ApiKey | None:
        return next((key for key in self._content.api_keys.values() if key.digest == digest), None)

    async def keys(self) -> Sequence[ApiKey]:
        return sorted(self._content.api_keys.values(), key=lambda key: (key.created_at, key.id))

    async def revoke(self, id: str, *, now: Millis) -> bool:
        known = self._content.api_keys.get(id)
        if known is not None and known.revoked_at is None:
            self._content.api_keys[id] = msgspec.structs.replace(known, revoked_at=now)
        return known is not None

    async def is_open(self) -> bool:
        return not self._content.api_keys

    async def seed(self, name: str, fresh: bytes) -> bytes:
        return self._content.seeds.setdefault(name, bytes(fresh))
