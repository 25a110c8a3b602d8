"""What steps print and log, in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import RunUid
from weft.ports.step_logs import LogBatch, LogLimits, LogQuery, LogTotals, StoredLine
from weft.stores.postgres.pool import Pool, fetch, fetch_value

_WRITE = "SELECT write_step_lines($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
_READ = (
    "SELECT l.number, l.at, l.place, l.attempt, l.level, l.source, l.text FROM runs r "
    "JOIN step_lines l ON l.run = r.num WHERE r.uid = $1 AND l.number > $2 AND l.level >= $3 "
    "AND ($4::text IS NULL OR l.place = $4) ORDER BY l.number LIMIT $5"
)
_TOTALS = "SELECT t.last, t.lines, t.bytes FROM runs r JOIN step_line_totals t ON t.run = r.num WHERE r.uid = $1"


class PostgresStepLogs:
    """The step logs of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def write(self, batch: LogBatch, limits: LogLimits) -> None:
        if batch.lines:
            rows = [
                (one.uid, one.at, one.place, one.attempt, one.level, one.source, one.text, one.lost)
                for one in batch.lines
            ]
            columns = map(list, zip(*rows, strict=True))
            await fetch_value(self._pool, _WRITE, batch.host, batch.number, limits.lines, limits.size_bytes, *columns)

    async def read(self, uid: RunUid, query: LogQuery) -> Sequence[StoredLine]:
        rows = await fetch(self._pool, _READ, uid, query.after, query.level, query.place, query.limit)
        return [StoredLine(**dict(zip(StoredLine.__struct_fields__, row, strict=True))) for row in rows]

    async def totals(self, uid: RunUid) -> LogTotals:
        rows = await fetch(self._pool, _TOTALS, uid)
        return LogTotals(*rows[0]) if rows else LogTotals()
