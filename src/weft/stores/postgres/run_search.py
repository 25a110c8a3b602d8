"""Search for runs in Postgres."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ports.run_query import RunCount, RunQuery
from weft.ports.store import IMPORTED, Page
from weft.stores.postgres.pool import Pool, fetch, fetch_row
from weft.stores.postgres.rows import RUN_COLUMNS, run_row
from weft.stores.rows import LAST_CHARACTER, NOT_DOOMED, as_json, json_text, parse_cursor
from weft.stores.run_branches import Position, make_count, make_page, status_branches

_NEWEST_FIRST = "ORDER BY created_at DESC, uid DESC"


async def search_runs(pool: Pool, query: RunQuery) -> Page:
    """Return a page of runs."""
    branches = _searches_per_status(query)
    examined = await _last_examined(pool, query, branches)
    text, values = page_text(branches, examined, query.limit + 1)
    return make_page([run_row(row) for row in await fetch(pool, text, *values)], query.limit, examined)


async def count_runs(pool: Pool, query: RunQuery, limit: int) -> RunCount:
    """Count the runs that a search finds, up to a limit."""
    branches = _searches_per_status(query)
    examined = await _last_examined(pool, query, branches)
    text, values = count_text(branches, examined, limit + 1)
    return make_count([row[0] for row in await fetch(pool, text, *values)], limit, examined)


def page_text(branches: Sequence[RunQuery], examined: Position | None, limit: int) -> tuple[str, Sequence[Any]]:
    """Return the statement that selects a page, and its values."""
    bound = _Bound()
    most = f"{bound.bind(limit)}::bigint"
    parts = [
        f"(SELECT {RUN_COLUMNS} FROM runs WHERE {bound.conditions(each, examined)} {_NEWEST_FIRST} LIMIT {most})"
        for each in branches
    ]
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS found {_NEWEST_FIRST} LIMIT {most}", bound.values


def count_text(branches: Sequence[RunQuery], examined: Position | None, limit: int) -> tuple[str, Sequence[Any]]:
    """Return the statement that counts the runs of each branch up to a limit, and its values."""
    bound = _Bound()
    most = f"{bound.bind(limit)}::bigint"
    parts = [
        f"(SELECT count(*) FROM (SELECT 1 FROM runs WHERE {bound.conditions(each, examined)} LIMIT {most}) AS counted)"
        for each in branches
    ]
    return " UNION ALL ".join(parts), bound.values


def _searches_per_status(query: RunQuery) -> Sequence[RunQuery]:
    """Return a search per status, unless the runs are found by their parent, an attribute or a fault."""
    return [query] if query.parent is not None or query.where or query.faulty else status_branches(query)


async def _last_examined(pool: Pool, query: RunQuery, branches: Sequence[RunQuery]) -> Position | None:
    """Return the position up to which every branch examines no more runs than it may; None if all may be examined."""
    if query.scan is None or not query.is_filtered or query.where:
        return None
    bound = _Bound()
    skipped = f"{bound.bind(query.scan - 1)}::bigint"
    parts = [
        f"(SELECT created_at, uid FROM runs WHERE {bound.indexed(each)} {_NEWEST_FIRST} LIMIT 1 OFFSET {skipped})"
        for each in branches
    ]
    text = f"SELECT created_at, uid FROM ({' UNION ALL '.join(parts)}) AS last {_NEWEST_FIRST} LIMIT 1"
    row = await fetch_row(pool, text, *bound.values)
    return None if row is None else (int(row[0]), str(row[1]))


class _Bound:
    """The parameters of a statement, and the conditions that use them."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def bind(self, value: Any) -> str:
        """Add a parameter. Returns its placeholder."""
        self.values.append(value)
        return f"${len(self.values)}"

    def indexed(self, query: RunQuery) -> str:
        """Return the conditions that an index in order of age answers."""
        return " AND ".join(self._indexed_conditions(query)) or "true"

    def conditions(self, query: RunQuery, examined: Position | None) -> str:
        """Return all conditions of a search."""
        parts = [NOT_DOOMED, *self._indexed_conditions(query), *self._other_conditions(query)]
        if query.changed_before is not None:
            parts.append(f"updated_at < {self.bind(query.changed_before)}")
        if query.id_prefix is not None:
            # Unlike LIKE, a range uses the index on ids and has no special characters.
            first, last = self.bind(query.id_prefix), self.bind(query.id_prefix + LAST_CHARACTER)
            parts.append(f"id >= {first} AND id < {last}")
        for name, value in as_json(query.where).items():
            parts += self._attribute_conditions(name, value)
        if examined is not None:
            parts.append(f"(created_at, uid) >= ({self.bind(examined[0])}::bigint, {self.bind(examined[1])}::text)")
        return " AND ".join(parts)

    def _indexed_conditions(self, query: RunQuery) -> list[str]:
        parts = []
        for column in ("workflow", "status", "parent"):
            value = getattr(query, column)
            if value is not None:
                parts.append(f"{column} = {self.bind(value)}")
        if query.faulty:
            parts.append("fault IS NOT NULL")
        if query.since is not None:
            parts.append(f"created_at >= {self.bind(query.since)}")
        limits = [at for at in (query.until, query.changed_before) if at is not None]
        parts += [f"created_at < {self.bind(at)}" for at in limits]
        if query.after is not None:
            created_at, uid = parse_cursor(query.after)
            parts.append(f"(created_at, uid) < ({self.bind(created_at)}::bigint, {self.bind(uid)}::text)")
        return parts

    def _other_conditions(self, query: RunQuery) -> list[str]:
        parts = []
        if query.leaves_out:
            parts.append(f"workflow <> ALL ({self.bind(list(query.leaves_out))}::text[])")
        if query.hides_imported:
            parts.append(f"status <> {self.bind(IMPORTED)}")
        if query.statuses and query.status is None:
            parts.append(f"status = ANY ({self.bind(list(query.statuses))}::text[])")
        for column in ("style", "version"):
            value = getattr(query, column)
            if value is not None:
                parts.append(f"{column} = {self.bind(value)}")
        return parts

    def _attribute_conditions(self, name: str, value: Any) -> list[str]:
        """Require an attribute to have this value. Containment uses the index, but a list also contains its parts."""
        contained = self.bind(json_text({name: value}))
        return [
            f"attributes @> {contained}::text::jsonb",
            f"attributes -> {self.bind(name)}::text = {self.bind(json_text(value))}::text::jsonb",
        ]
