"""Split a search for runs into searches that an index answers in order, and join their results. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from weft.ports.run_query import RunCount, RunQuery
from weft.ports.store import IMPORTED, OPEN_STATUSES, OVER_STATUSES, Page, RunRow
from weft.stores.rows import make_cursor

Position = tuple[int, str]
"""The place of a run in a list: when it was created, and its uid."""


def status_branches(query: RunQuery) -> Sequence[RunQuery]:
    """Return a search per status, because indexes have the runs of one status, or of one workflow and status, in order.

    A search for neither a workflow nor a status stays as it is.
    """
    statuses = list(dict.fromkeys(query.any_status))
    if not statuses and query.workflow is not None:
        statuses = [status for status in (*OPEN_STATUSES, *OVER_STATUSES) if not _hides_status(query, status)]
    return [msgspec.structs.replace(query, status=status, statuses=()) for status in statuses] or [query]


def _hides_status(query: RunQuery, status: str) -> bool:
    return status == IMPORTED and query.hides_imported


def make_page(rows: Iterable[RunRow], limit: int, examined: Position | None) -> Page:
    """Return the page of a search from the rows of its branches, each with one row more than the limit.

    ``examined`` is the last position that was looked at, if there may be more after it.
    """
    found = sorted(rows, key=lambda row: (row.created_at, row.uid), reverse=True)
    page = found[:limit]
    if len(found) > limit:
        return Page(page, make_cursor(page[-1].created_at, page[-1].uid))
    return Page(page, f"{examined[0]}.{examined[1]}" if examined is not None else None)


def make_count(counts: Iterable[int], limit: int, examined: Position | None) -> RunCount:
    """Return the count of a search from the counts of its branches, each at most one above the limit."""
    total = sum(counts)
    return RunCount(min(total, limit), total > limit or examined is not None)
