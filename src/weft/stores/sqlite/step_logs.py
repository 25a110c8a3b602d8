"""What steps print and log, in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from weft.core.ids import RunUid
from weft.ports.step_logs import LogBatch, LogLimits, LogQuery, LogTotals, NewLine, StoredLine
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_HEAD = (
    "SELECT r.num, coalesce(t.last, 0), coalesce(t.lines, 0), coalesce(t.bytes, 0), t.host, t.batch "
    "FROM runs r LEFT JOIN step_line_totals t ON t.run = r.num WHERE r.uid = ?"
)
_ADD = (
    "INSERT INTO step_lines (run, number, at, place, attempt, level, source, text, bytes) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_COUNT = "INSERT OR REPLACE INTO step_line_totals (run, last, lines, bytes, host, batch) VALUES (?, ?, ?, ?, ?, ?)"
# The newest line that has to go: with the lines after it, there are as many lines or bytes as may stay.
_TRIM = (
    "DELETE FROM step_lines WHERE run = ?1 AND number <= (SELECT max(number) FROM ("
    "SELECT number, row_number() OVER newest AS lines, sum(bytes) OVER newest AS bytes FROM step_lines WHERE run = ?1 "
    "WINDOW newest AS (ORDER BY number DESC)) WHERE lines > ?2 OR bytes > ?3) RETURNING bytes"
)
_READ = (
    "SELECT number, at, place, attempt, level, source, text FROM step_lines "
    "WHERE run = (SELECT num FROM runs WHERE uid = ?1) AND number > ?2 AND level >= ?3 "
    "AND (?4 IS NULL OR place = ?4) ORDER BY number LIMIT ?5"
)
_TOTALS = "SELECT t.last, t.lines, t.bytes FROM runs r JOIN step_line_totals t ON t.run = r.num WHERE r.uid = ?"
SMALL_LINES_MAX = 20
"""More lines than this are written on the writer's thread."""


class SqliteStepLogs:
    """The step logs of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def write(self, batch: LogBatch, limits: LogLimits) -> None:
        by_run: dict[RunUid, list[NewLine]] = {}
        for line in batch.lines:
            by_run.setdefault(line.uid, []).append(line)

        def work(connection: apsw.Connection) -> None:
            for uid, lines in by_run.items():
                _write_run(connection, uid, lines, batch, limits)

        if by_run:
            is_small = len(batch.lines) <= SMALL_LINES_MAX
            await (self._writer.small(work) if is_small else self._writer.large(work))

    async def read(self, uid: RunUid, query: LogQuery) -> Sequence[StoredLine]:
        values = (uid, query.after, query.level, query.place, query.limit)

        def work(connection: apsw.Connection) -> list[StoredLine]:
            names = StoredLine.__struct_fields__
            return [StoredLine(**dict(zip(names, row, strict=True))) for row in connection.execute(_READ, values)]

        return self._reader.read(work)

    async def totals(self, uid: RunUid) -> LogTotals:
        row: Any = self._reader.read(lambda connection: connection.execute(_TOTALS, (uid,)).fetchone())
        return LogTotals(*row) if row is not None else LogTotals()


def _write_run(
    connection: apsw.Connection, uid: RunUid, lines: Sequence[NewLine], batch: LogBatch, limits: LogLimits
) -> None:
    """Write the lines of one run, unless this batch was already written."""
    head: Any = connection.execute(_HEAD, (uid,)).fetchone()
    if head is None or (head[4] == batch.host and head[5] >= batch.number):
        return
    num, last, count, size = head[:4]
    rows = []
    for line in lines:
        last += line.lost + 1
        added = len(line.text.encode())
        rows.append((num, last, line.at, line.place, line.attempt, line.level, line.source, line.text, added))
        size += added
    connection.executemany(_ADD, rows)
    count += len(rows)
    if count > limits.lines or size > limits.size_bytes:
        rest = limits.trimmed()
        gone = [int(row[0]) for row in connection.execute(_TRIM, (num, rest.lines, rest.size_bytes))]
        count, size = count - len(gone), size - sum(gone)
    connection.execute(_COUNT, (num, last, count, size, batch.host, batch.number))
