"""The routes of bulks."""

from __future__ import annotations

from weft.errors import KeyReused, LimitExceeded, NotFound, UsageError
from weft.server.endpoints import bulk
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

BULKS = (
    ApiRoute(
        name="bulk",
        method="POST",
        path=f"{API}/bulk",
        summary="Do the same to many runs, as a durable run; with dry_run only count what would happen",
        endpoint=bulk.bulk,
        scope=AccessScope.OPERATE,
        body=bulk.NewBulk,
        answer=bulk.BulkView,
        statuses=(202, 200),
        errors=(KeyReused, NotFound, UsageError, LimitExceeded),
    ),
)
