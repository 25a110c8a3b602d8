"""Tags of workflows in Postgres. A change is one statement, and so one transaction."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence

from weft.ports.tags import Tag, TagKey, TagMove
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.session import Record

_SELECT = "SELECT tenant, workflow, tag, version, cursor, moves, revision, moved_by, moved_at, reason FROM tags"
_KEY = "tenant = $1 AND workflow = $2 AND tag = $3"
_MAKE = (
    "INSERT INTO tags (tenant, workflow, tag, version, cursor, moves, revision, moved_by, moved_at, reason) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING 1"
)
_CHANGE = (
    "UPDATE tags SET version = $4, cursor = $5, moves = $6, revision = $7, moved_by = $8, moved_at = $9, reason = $10 "
    f"WHERE {_KEY} AND revision = $7 - 1 RETURNING 1"
)
_MOVES = (
    'SELECT number, "before", "after", moved_by, moved_at, reason FROM tag_moves '
    f"WHERE {_KEY} AND ($4::bigint IS NULL OR number <= $4) ORDER BY number DESC LIMIT $5"
)
# What is cut and what is written are different rows, because both see the table as it was before.
_WITH_MOVE = (
    "WITH written AS ({change}), "
    f"cut AS (DELETE FROM tag_moves WHERE {_KEY} AND number > $11 AND EXISTS (SELECT FROM written)), "
    'made AS (INSERT INTO tag_moves (tenant, workflow, tag, number, "before", "after", moved_by, moved_at, reason) '
    "SELECT $1, $2, $3, $11, $12, $13, $8, $9, $10 WHERE EXISTS (SELECT FROM written) "
    'ON CONFLICT (tenant, workflow, tag, number) DO UPDATE SET "before" = excluded."before", '
    '"after" = excluded."after", moved_by = excluded.moved_by, moved_at = excluded.moved_at, '
    "reason = excluded.reason) SELECT count(*) FROM written"
)


class PostgresTags:
    """The tags of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def get(self, key: TagKey) -> Tag | None:
        row = await fetch_row(self._pool, f"{_SELECT} WHERE {_KEY}", *key)
        return None if row is None else _tag_of_row(row)

    async def find(self, tenant: str, workflow: str | None = None) -> Sequence[Tag]:
        text = f"{_SELECT} WHERE tenant = $1 AND ($2::text IS NULL OR workflow = $2) ORDER BY workflow, tag"
        return [_tag_of_row(row) for row in await fetch(self._pool, text, tenant, workflow)]

    async def moves(self, key: TagKey, *, upto: int | None = None, limit: int = 100) -> Sequence[TagMove]:
        return [_move_of_row(row) for row in await fetch(self._pool, _MOVES, *key, upto, limit)]

    async def write(self, tag: Tag, move: TagMove | None = None) -> bool:
        change = _MAKE if tag.revision == 1 else _CHANGE
        values = (*tag.key, tag.version, tag.cursor, tag.moves, tag.revision, tag.by, tag.at, tag.reason)
        if move is None:
            return bool(await fetch_value(self._pool, change, *values))
        text = _WITH_MOVE.format(change=change)
        return bool(await fetch_value(self._pool, text, *values, move.number, move.before, move.after))


def _tag_of_row(row: Record) -> Tag:
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


def _move_of_row(row: Record) -> TagMove:
    number, before, after, by, at, reason = row
    return TagMove(number=number, before=before, after=after, by=by, at=at, reason=reason)
