"""API keys in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import Millis
from weft.errors import Conflict
from weft.ports.access import ApiKey
from weft.stores.rows import json_text
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_SELECT = "SELECT id, digest, name, tenant, scopes, groups, created_at, expires_at, revoked_at FROM api_keys"
_ADD = (
    "INSERT INTO api_keys (id, digest, name, tenant, scopes, groups, created_at, expires_at, revoked_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_REVOKE = "UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?"


class SqliteAccess:
    """The API keys of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def add(self, key: ApiKey) -> None:
        values = (key.id, key.digest, key.name, key.tenant, json_text(key.scopes), json_text(key.groups))

        def work(connection: apsw.Connection) -> None:
            connection.execute(_ADD, (*values, key.created_at, key.expires_at, key.revoked_at))
            if not connection.changes():
                raise Conflict(f"An API key with the id {key.id} or the same digest already exists.")

        await self._writer.small(work)

    async def find(self, digest: str) -> ApiKey | None:
        def work(connection: apsw.Connection) -> ApiKey | None:
            row = connection.execute(f"{_SELECT} WHERE digest = ?", (digest,)).fetchone()
            return None if row is None else _api_key(row)

        return self._reader.read(work)

    async def keys(self) -> Sequence[ApiKey]:
        text = f"{_SELECT} ORDER BY created_at, id"
        return await self._reader.read_in_thread(lambda connection: [_api_key(row) for row in connection.execute(text)])

    async def revoke(self, id: str, *, now: Millis) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute(_REVOKE, (now, id))
            return bool(connection.changes())

        return await self._writer.small(work)

    async def is_open(self) -> bool:
        text = "SELECT 1 FROM api_keys LIMIT 1"
        return self._reader.read(lambda connection: connection.execute(text).fetchone() is None)

    async def seed(self, name: str, fresh: bytes) -> bytes:
        def known(connection: apsw.Connection) -> bytes | None:
            row = connection.execute("SELECT bytes FROM seeds WHERE name = ?", (name,)).fetchone()
            return None if row is None else bytes(row[0])

        def work(connection: apsw.Connection) -> bytes:
            connection.execute("INSERT INTO seeds VALUES (?, ?) ON CONFLICT DO NOTHING", (name, bytes(fresh)))
            found = known(connection)
            assert found is not None
            return found

        # A seed is written once and read often, so read first.
        stored = self._reader.read(known)
        return stored if stored is not None else await self._writer.small(work)


def _api_key(row: tuple[Any, ...]) -> ApiKey:
    key_id, digest, name, tenant, scopes, groups, created_at, expires_at, revoked_at = row
    return ApiKey(
        id=key_id,
        digest=digest,
        name=name,
        tenant=tenant,
        scopes=msgspec.json.decode(scopes, type=list[str]),
        groups=msgspec.json.decode(groups, type=list[str]),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
    )
