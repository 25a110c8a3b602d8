"""The routes of deletion: delete runs, keep them, and read the audit table."""

from __future__ import annotations

from weft.errors import NotFound, NotOver, RunKept, UsageError
from weft.runtime.deletion import DeletedTree, LegalHold
from weft.server.endpoints import deletion
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

_RUN = f"{API}/runs/{{id}}"

RETENTION = (
    ApiRoute(
        name="deleteRun",
        method="DELETE",
        path=_RUN,
        summary="Delete a run and all runs below it, once the whole tree is over",
        endpoint=deletion.delete,
        scope=AccessScope.ADMIN,
        body=deletion.Reasoned,
        answer=DeletedTree,
        errors=(NotFound, NotOver, RunKept, UsageError),
    ),
    ApiRoute(
        name="keepRun",
        method="POST",
        path=f"{_RUN}/keep",
        summary="Keep a run and its whole tree from deletion, or end that",
        endpoint=deletion.keep,
        scope=AccessScope.ADMIN,
        body=deletion.NewHold,
        answer=LegalHold,
        errors=(NotFound, UsageError),
    ),
    ApiRoute(
        name="getHold",
        method="GET",
        path=f"{_RUN}/keep",
        summary="Whether a run is kept from deletion, by whom and why",
        endpoint=deletion.show_hold,
        scope=AccessScope.READ,
        answer=LegalHold,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="listAudit",
        method="GET",
        path=f"{API}/audit",
        summary="Who deleted or kept which runs, newest first",
        endpoint=deletion.audit,
        scope=AccessScope.ADMIN,
        operator_only=True,
        query=deletion.AuditQuery,
        answer=deletion.AuditList,
        errors=(UsageError,),
    ),
)
