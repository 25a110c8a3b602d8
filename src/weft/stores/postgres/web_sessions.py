"""Sessions of browsers in Postgres."""

from __future__ import annotations

import msgspec

from weft.core.ids import Millis
from weft.ports.web_sessions import SessionOwner, WebSession
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value

_DROP_EXPIRED = "DELETE FROM web_sessions WHERE expires_at <= $1"
_ADD = "INSERT INTO web_sessions (digest, owner, created_at, seen_at, expires_at) VALUES ($1, $2, $3, $4, $5)"
_FIND = "SELECT owner, created_at, seen_at, expires_at FROM web_sessions WHERE digest = $1"
_TOUCH = "UPDATE web_sessions SET seen_at = $2 WHERE digest = $1"
_END = "DELETE FROM web_sessions WHERE digest = $1 RETURNING 1"


class PostgresWebSessions:
    """The sessions of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, session: WebSession) -> None:
        owner = msgspec.json.encode(session.owner).decode()
        await fetch(self._pool, _DROP_EXPIRED, session.created_at)
        await fetch(self._pool, _ADD, session.digest, owner, session.created_at, session.seen_at, session.expires_at)

    async def find(self, digest: str) -> WebSession | None:
        row = await fetch_row(self._pool, _FIND, digest)
        if row is None:
            return None
        return WebSession(
            digest=digest,
            owner=msgspec.json.decode(row["owner"], type=SessionOwner),
            created_at=row["created_at"],
            seen_at=row["seen_at"],
            expires_at=row["expires_at"],
        )

    async def touch(self, digest: str, *, now: Millis) -> None:
        await fetch(self._pool, _TOUCH, digest, now)

    async def end(self, digest: str) -> bool:
        return bool(await fetch_value(self._pool, _END, digest))
