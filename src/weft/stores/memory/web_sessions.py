"""Sessions of browsers in memory."""

from __future__ import annotations

import msgspec

from weft.core.ids import Millis
from weft.ports.web_sessions import WebSession
from weft.stores.memory.content import MemoryContent


class MemoryWebSessions:
    """The sessions of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def add(self, session: WebSession) -> None:
        known = self._content.web_sessions
        for digest in [one.digest for one in known.values() if one.expires_at <= session.created_at]:
            del known[digest]
        known[session.digest] = session

    async def find(self, digest: str) -> WebSession | None:
        return self._content.web_sessions.get(digest)

    async def touch(self, digest: str, *, now: Millis) -> None:
        known = self._content.web_sessions
        if digest in known:
            known[digest] = msgspec.structs.replace(known[digest], seen_at=now)

    async def end(self, digest: str) -> bool:
        return self._content.web_sessions.pop(digest, None) is not None
