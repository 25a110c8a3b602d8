"""Delete runs, keep them from deletion, and show who did either."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.core.ids import RunId
from weft.ports.retention import NEWEST
from weft.runtime.deletion import DeletedTree, DeletionService, LegalHold
from weft.server import views
from weft.server.request import ApiCall


class Reasoned(views.Form, frozen=True, kw_only=True):
    """Why, and who says so. With an API key, the key says who."""

    reason: Annotated[str, Meta(min_length=1, max_length=10_000)]
    by: views.Text = ""


class NewHold(views.Form, frozen=True, kw_only=True):
    """A hold on the tree of a run, or its end. A hold needs a reason."""

    reason: views.Text = ""
    by: views.Text = ""
    end: bool = False


class AuditQuery(views.Form, frozen=True, kw_only=True):
    run: views.Id | None = None
    """The id of a run, also of one that was deleted."""
    cursor: Annotated[int, Meta(ge=1, le=NEWEST)] = NEWEST
    limit: views.Limit = 100


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """A deletion, or a hold: who, when, why, and how much was deleted."""

    at: datetime
    verb: str
    run: str
    workflow: str
    by: str
    reason: str
    details: Mapping[str, Any]


class AuditList(msgspec.Struct, frozen=True):
    """The newest lines of the audit table, newest first."""

    entries: list[AuditLine]
    cursor: int | None


async def delete(call: ApiCall) -> DeletedTree:
    """Delete a run and all runs below it."""
    given = call.body_as(Reasoned)
    return await DeletionService(call.service).delete(_run(call), given.reason, by=call.by(given.by), key=call.key)


async def keep(call: ApiCall) -> LegalHold:
    """Put a hold on the tree of a run, or end it."""
    given = call.body_as(NewHold)
    deletion = DeletionService(call.service)
    change = deletion.end_keep if given.end else deletion.keep
    return await change(_run(call), given.reason, by=call.by(given.by))


async def show_hold(call: ApiCall) -> LegalHold:
    """Return the hold on the tree of a run, if there is one."""
    return await DeletionService(call.service).hold(_run(call))


async def audit(call: ApiCall) -> AuditList:
    """Return the audit entries of all runs, or of those with one id."""
    asked = call.query_as(AuditQuery)
    run_id = RunId(asked.run) if asked.run is not None else None
    found = await DeletionService(call.service).audit(run_id, before=asked.cursor, limit=asked.limit)
    lines = [
        AuditLine(
            at=datetime.fromtimestamp(entry.at / 1000, UTC),
            verb=entry.verb,
            run=entry.run,
            workflow=entry.workflow,
            by=entry.by,
            reason=entry.reason,
            details=entry.details,
        )
        for entry in found
    ]
    return AuditList(lines, found[-1].number if len(found) == asked.limit else None)


def _run(call: ApiCall) -> RunId:
    return RunId(call.parameters["id"])
