"""Tags of workflows in SQLite."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from weft.ports.tags import Tag, TagKey, TagMove
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_SELECT = "SELECT tenant, workflow, tag, version, cursor, moves, revision, moved_by, moved_at, reason FROM tags"
_KEY = "tenant = ? AND workflow = ? AND tag = ?"
_MAKE = (
    "INSERT INTO tags (tenant, workflow, tag, version, cursor, moves, revision, moved_by, moved_at, reason) "
    "VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_CHANGE = (
    "UPDATE tags SET version = ?, cursor = ?, moves = ?, revision = revision + 1, moved_by = ?, moved_at = ?, "
    f"reason = ? WHERE {_KEY} AND revision = ?"
)
_MOVES = (
    'SELECT number, "before", "after", moved_by, moved_at, reason FROM tag_moves '
    f"WHERE {_KEY} AND number <= ? ORDER BY number DESC LIMIT ?"
)
_MOVE = (
    'INSERT INTO tag_moves (tenant, workflow, tag, number, "before", "after", moved_by, moved_at, reason) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_LAST = 2**62


class SqliteTags:
    """The tags of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def get(self, key: TagKey) -> Tag | None:
        def work(connection: apsw.Connection) -> Tag | None:
            row = connection.execute(f"{_SELECT} WHERE {_KEY}", key).fetchone()
            return None if row is None else _tag_of_row(row)

        return self._reader.read(work)

    async def find(self, tenant: str, workflow: str | None = None) -> Sequence[Tag]:
        text = f"{_SELECT} WHERE tenant = ?1 AND (?2 IS NULL OR workflow = ?2) ORDER BY workflow, tag"
        return await self._reader.read_in_thread(
            lambda connection: [_tag_of_row(row) for row in connection.execute(text, (tenant, workflow))]
        )

    async def moves(self, key: TagKey, *, upto: int | None = None, limit: int = 100) -> Sequence[TagMove]:
        values = (*key, _LAST if upto is None else upto, limit)
        return self._reader.read(lambda connection: [_move_of_row(row) for row in connection.execute(_MOVES, values)])

    async def write(self, tag: Tag, move: TagMove | None = None) -> bool:
        def work(connection: apsw.Connection) -> bool:
            last = (tag.by, tag.at, tag.reason)
            if tag.revision == 1:
                connection.execute(_MAKE, (*tag.key, tag.version, tag.cursor, tag.moves, *last))
            else:
                values = (tag.version, tag.cursor, tag.moves, *last, *tag.key, tag.revision - 1)
                connection.execute(_CHANGE, values)
            if not connection.changes():
                return False
            if move is not None:
                connection.execute(f"DELETE FROM tag_moves WHERE {_KEY} AND number >= ?", (*tag.key, move.number))
                made = (move.number, move.before, move.after, move.by, move.at, move.reason)
                connection.execute(_MOVE, (*tag.key, *made))
            return True

        return await self._writer.small(work)


def _tag_of_row(row: tuple[Any, ...]) -> Tag:
    tenant, workflow, tag, version, cursor, moves, revision, by, at, reason = row
    return Tag(
        key=TagKey(tenant, workflow, tag),
        version=version,
        cursor=cursor,
        moves=moves,
        revision=revision,
        by=by,
        at=at,
        reason=reason,
    )


def _move_of_row(row: tuple[Any, ...]) -> TagMove:
    number, before, after, by, at, reason = row
    return TagMove(number=number, before=before, after=after, by=by, at=at, reason=reason)
