"""What steps print and log, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import RunUid
from weft.ports.step_logs import LogBatch, LogLimits, LogQuery, LogTotals, NewLine, StoredLine
from weft.stores.memory.content import MemoryContent, StoredLines


class MemoryStepLogs:
    """The step logs of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def write(self, batch: LogBatch, limits: LogLimits) -> None:
        by_run: dict[RunUid, list[NewLine]] = {}
        for line in batch.lines:
            if line.uid in self._content.runs:
                by_run.setdefault(line.uid, []).append(line)
        for uid, lines in by_run.items():
            stored = self._content.step_lines.setdefault(uid, StoredLines())
            if stored.batch[0] == batch.host and stored.batch[1] >= batch.number:
                continue
            stored.batch = (batch.host, batch.number)
            for line in lines:
                _add_line(stored, line)
            if len(stored.lines) > limits.lines or stored.size_bytes > limits.size_bytes:
                _trim_lines(stored, limits.trimmed())

    async def read(self, uid: RunUid, query: LogQuery) -> Sequence[StoredLine]:
        stored = self._content.step_lines.get(uid) if uid in self._content.runs else None
        if stored is None:
            return []
        found = [
            line
            for line in stored.lines
            if line.number > query.after
            and line.level >= query.level
            and (query.place is None or line.place == query.place)
        ]
        return found[: query.limit]

    async def totals(self, uid: RunUid) -> LogTotals:
        stored = self._content.step_lines.get(uid) if uid in self._content.runs else None
        return LogTotals() if stored is None else LogTotals(stored.last, len(stored.lines), stored.size_bytes)


def _add_line(stored: StoredLines, line: NewLine) -> None:
    stored.last += line.lost + 1
    stored.size_bytes += len(line.text.encode())
    stored.lines.append(
        StoredLine(
            number=stored.last,
            at=line.at,
            place=line.place,
            attempt=line.attempt,
            level=line.level,
            source=line.source,
            text=line.text,
        )
    )


def _trim_lines(stored: StoredLines, limits: LogLimits) -> None:
    """Delete the oldest lines until the rest is within the limits."""
    gone = 0
    for line in stored.lines:
        if len(stored.lines) - gone <= limits.lines and stored.size_bytes <= limits.size_bytes:
            break
        stored.size_bytes -= len(line.text.encode())
        gone += 1
    del stored.lines[:gone]
