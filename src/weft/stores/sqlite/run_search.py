"""Search for runs in SQLite, with a statement whose index is chosen here.

SQLite does not know how values are distributed, so each statement names its index. Runs with an attribute or a prefix
are collected and sorted if there are few of them. Otherwise runs are visited in order of age, within one status or
workflow, until the page is full.
"""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from weft.ports.run_query import RunCount, RunQuery
from weft.ports.store import IMPORTED, Page
from weft.stores.rows import LAST_CHARACTER, NOT_DOOMED, canonical_json, parse_cursor
from weft.stores.run_branches import Position, make_count, make_page, status_branches
from weft.stores.sqlite.rows import RUN_COLUMNS, run_row

FEW = 2_000
"""So many runs are collected and sorted rather than visited in order of age."""

_NEWEST_FIRST = "ORDER BY runs.created_at DESC, runs.uid DESC"
_BY_ID = "runs INDEXED BY sqlite_autoindex_runs_2"
_WITH_ATTRIBUTE = "attributes AS found CROSS JOIN runs ON runs.num = found.run"
_COLUMNS = ", ".join(f"runs.{name}" for name in RUN_COLUMNS.split(", "))


class _Condition(NamedTuple):
    text: str
    values: tuple[Any, ...] = ()


class Statement(NamedTuple):
    """A part of a search: where it looks, and its conditions."""

    source: str
    conditions: list[_Condition]

    @property
    def where(self) -> str:
        return " AND ".join(condition.text for condition in self.conditions)

    @property
    def values(self) -> tuple[Any, ...]:
        return tuple(value for condition in self.conditions for value in condition.values)

    def rows_text(self) -> str:
        """Return the statement that selects a page."""
        return f"SELECT {_COLUMNS} FROM {self.source} WHERE {self.where} {_NEWEST_FIRST} LIMIT ?"

    def count_text(self) -> str:
        """Return the statement that counts up to a limit."""
        return f"SELECT count(*) FROM (SELECT 1 FROM {self.source} WHERE {self.where} LIMIT ?)"

    def last_text(self) -> str:
        """Return the statement that selects the position of a run by its number in the list."""
        return (
            f"SELECT runs.created_at, runs.uid FROM {self.source} WHERE {self.where} {_NEWEST_FIRST} LIMIT 1 OFFSET ?"
        )


def search_runs(connection: apsw.Connection, query: RunQuery) -> Page:
    """Return a page of runs."""
    statements, examined = _plan_search(connection, query)
    limit = query.limit + 1
    rows = [run_row(row) for each in statements for row in connection.execute(each.rows_text(), (*each.values, limit))]
    return make_page(rows, query.limit, examined)


def count_runs(connection: apsw.Connection, query: RunQuery, limit: int) -> RunCount:
    """Count the runs that a search finds, up to a limit."""
    statements, examined = _plan_search(connection, query)
    counts = [connection.execute(each.count_text(), (*each.values, limit + 1)).get for each in statements]
    return make_count(counts, limit, examined)


def _plan_search(connection: apsw.Connection, query: RunQuery) -> tuple[Sequence[Statement], Position | None]:
    """Return the statements of a search, and the last position that they examine if they do not examine all."""
    few = _search_of_few(connection, query)
    if few is not None:
        return [few], None
    branches = [query] if query.parent is not None or query.faulty else status_branches(query)
    examined = _last_examined(connection, branches) if query.scan is not None and query.is_filtered else None
    above = [_Condition("(runs.created_at, runs.uid) >= (?, ?)", examined)] if examined is not None else []
    return [Statement(_source_with_index(each), [*_all_conditions(each), *above]) for each in branches], examined


def _search_of_few(connection: apsw.Connection, query: RunQuery) -> Statement | None:
    """Return the statement for a search by an attribute or a prefix that few runs have; None if many have it."""
    for name, value in query.where.items():
        wanted = _Condition("found.name = ? AND found.value = ?", (name, canonical_json(value)))
        text = "SELECT count(*) FROM (SELECT 1 FROM attributes WHERE name = ? AND value = ? LIMIT ?)"
        if connection.execute(text, (*wanted.values, FEW + 1)).get <= FEW:
            return Statement(_WITH_ATTRIBUTE, [wanted, *_all_conditions(query)])
    if query.id_prefix is not None:
        text = f"SELECT count(*) FROM (SELECT 1 FROM {_BY_ID} WHERE id >= ? AND id < ? LIMIT ?)"
        if connection.execute(text, (*_prefix_range(query.id_prefix), FEW + 1)).get <= FEW:
            return Statement(_BY_ID, _all_conditions(query))
    return None


def _source_with_index(query: RunQuery) -> str:
    if query.parent is not None:
        return "runs INDEXED BY runs_children"
    if query.faulty:
        return "runs INDEXED BY runs_fault"
    if query.workflow is not None:
        return "runs INDEXED BY runs_workflow"
    return f"runs INDEXED BY {'runs_newest' if query.status is None else 'runs_status'}"


def _last_examined(connection: apsw.Connection, branches: Sequence[RunQuery]) -> Position | None:
    """Return the position up to which every branch examines no more runs than it may; None if all may be examined."""
    found: list[Position] = []
    for query in branches:
        assert query.scan is not None
        each = Statement(_source_with_index(query), _indexed_conditions(query))
        row = connection.execute(each.last_text(), (*each.values, query.scan - 1)).fetchone()
        found += [(int(str(row[0])), str(row[1]))] if row is not None else []
    return max(found, default=None)


def _indexed_conditions(query: RunQuery) -> list[_Condition]:
    """Return the conditions that the index of a search answers."""
    parts: list[_Condition] = []
    if query.parent is not None:
        parts.append(_Condition("runs.parent = ?", (query.parent,)))
    elif query.faulty:
        parts.append(_Condition("runs.fault IS NOT NULL"))
    else:
        if query.workflow is not None:
            parts.append(_Condition("runs.workflow = ?", (query.workflow,)))
        if query.status is not None:
            parts.append(_Condition("runs.status = ?", (query.status,)))
    before = min((at for at in (query.until, query.changed_before) if at is not None), default=None)
    if query.since is not None:
        parts.append(_Condition("runs.created_at >= ?", (query.since,)))
    if before is not None:
        parts.append(_Condition("runs.created_at < ?", (before,)))
    if query.after is not None:
        parts.append(_Condition("(runs.created_at, runs.uid) < (?, ?)", parse_cursor(query.after)))
    return parts or [_Condition("true")]


def _all_conditions(query: RunQuery) -> list[_Condition]:
    """Return all conditions of a search."""
    parts = [*_indexed_conditions(query), _Condition(f"runs.{NOT_DOOMED}")]
    if query.leaves_out:
        text = f"runs.workflow NOT IN ({', '.join('?' * len(query.leaves_out))})"
        parts.append(_Condition(text, tuple(query.leaves_out)))
    if query.hides_imported:
        parts.append(_Condition("runs.status <> ?", (IMPORTED,)))
    if query.parent is not None or query.faulty or query.statuses:
        parts += _unindexed_conditions(query)
    for column in ("style", "version"):
        if getattr(query, column) is not None:
            parts.append(_Condition(f"runs.{column} = ?", (getattr(query, column),)))
    if query.changed_before is not None:
        parts.append(_Condition("runs.updated_at < ?", (query.changed_before,)))
    if query.id_prefix is not None:
        # Unlike LIKE, a range uses the index on ids and has no special characters.
        parts.append(_Condition("runs.id >= ? AND runs.id < ?", _prefix_range(query.id_prefix)))
    for name, value in query.where.items():
        text = "EXISTS (SELECT 1 FROM attributes WHERE name = ? AND value = ? AND run = runs.num)"
        parts.append(_Condition(text, (name, canonical_json(value))))
    return parts


def _unindexed_conditions(query: RunQuery) -> list[_Condition]:
    """Return the conditions on workflow, status and fault of a search by another index."""
    parts = []
    if query.workflow is not None:
        parts.append(_Condition("runs.workflow = ?", (query.workflow,)))
    if query.any_status:
        marks = ", ".join("?" * len(query.any_status))
        parts.append(_Condition(f"runs.status IN ({marks})", tuple(query.any_status)))
    if query.faulty:
        parts.append(_Condition("runs.fault IS NOT NULL"))
    return parts


def _prefix_range(prefix: str) -> tuple[str, str]:
    return prefix, prefix + LAST_CHARACTER
