"""API keys in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import Millis
from weft.errors import Conflict
from weft.ports.access import ApiKey
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.session import Record

_SELECT = "SELECT id, digest, name, tenant, scopes, groups, created_at, expires_at, revoked_at FROM api_keys"
_ADD = (
    "INSERT INTO api_keys (id, digest, name, tenant, scopes, groups, created_at, expires_at, revoked_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING 1"
)
_REVOKE = "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING 1"
_READ_SEED = "SELECT bytes FROM seeds WHERE name = $1"
_WRITE_SEED = "INSERT INTO seeds (name, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING"


class PostgresAccess:
    """The API keys of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, key: ApiKey) -> None:
        values = (key.id, key.digest, key.name, key.tenant, list(key.scopes), list(key.groups))
        times = (key.created_at, key.expires_at, key.revoked_at)
        if not await fetch_value(self._pool, _ADD, *values, *times):
            raise Conflict(f"An API key with the id {key.id} or the same digest already exists.")

    async def find(self, digest: str) -> ApiKey | None:
        row = await fetch_row(self._pool, f"{_SELECT} WHERE digest = $1", digest)
        return None if row is None else _api_key(row)

    async def keys(self) -> Sequence[ApiKey]:
        return [_api_key(row) for row in await fetch(self._pool, f"{_SELECT} ORDER BY created_at, id")]

    async def revoke(self, id: str, *, now: Millis) -> bool:
        return bool(await fetch_value(self._pool, _REVOKE, id, now))

    async def is_open(self) -> bool:
        return not await fetch_value(self._pool, "SELECT 1 FROM api_keys LIMIT 1")

    async def seed(self, name: str, fresh: bytes) -> bytes:
        known = await fetch_value(self._pool, _READ_SEED, name)
        if known is None:
            # Read it back in a second statement, because the insert does not see what another host has just written.
            await fetch(self._pool, _WRITE_SEED, name, bytes(fresh))
            known = await fetch_value(self._pool, _READ_SEED, name)
        return bytes(known)


def _api_key(row: Record) -> ApiKey:
    return ApiKey(
        id=row["id"],
        digest=row["digest"],
        name=row["name"],
        tenant=row["tenant"],
        scopes=list(row["scopes"]),
        groups=list(row["groups"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
    )
