"""Output streams in Postgres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.core.ids import RunUid
from weft.ports.streams import Chunk, NewChunk
from weft.stores.postgres.pool import Pool, fetch, fetch_value

_WRITE = "SELECT write_chunks($1, $2, $3, $4, $5, $6, $7)"
_READ = (
    'SELECT c."offset", c.at, c.place, c.attempt, c.body FROM runs r JOIN chunks c ON c.run = r.num '
    'WHERE r.uid = $1 AND c.stream = $2 AND c."offset" > $3 ORDER BY c."offset" LIMIT $4'
)
_LENGTHS = (
    "SELECT s.stream, s.length FROM runs r JOIN streams s ON s.run = r.num "
    "WHERE r.uid = $1 AND s.length > 0 ORDER BY s.stream"
)


class PostgresStreams:
    """The output streams of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def write(self, chunks: Sequence[NewChunk]) -> None:
        if chunks:
            rows = [(one.uid, one.stream, one.at, one.by, one.attempt, one.key, one.body.decode()) for one in chunks]
            await fetch_value(self._pool, _WRITE, *map(list, zip(*rows, strict=True)))

    async def read(self, uid: RunUid, stream: str, *, after: int, limit: int) -> Sequence[Chunk]:
        rows = await fetch(self._pool, _READ, uid, stream, after, limit)
        return [
            Chunk(offset=offset, at=at, by=by, attempt=attempt, body=body.encode())
            for offset, at, by, attempt, body in rows
        ]

    async def lengths(self, uid: RunUid) -> Mapping[str, int]:
        return {str(stream): int(length) for stream, length in await fetch(self._pool, _LENGTHS, uid)}
