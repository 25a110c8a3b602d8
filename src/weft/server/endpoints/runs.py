"""Find the run that a request names, and wait for its result."""

from __future__ import annotations

from msgspec import Raw

from weft.core.ids import RunId
from weft.errors import NotFound
from weft.observe.explain import explain_read
from weft.observe.explanation import Explanation
from weft.observe.runs import split_place
from weft.ports.store import MOVED, OVER_STATUSES, RunRow
from weft.runtime.runs import Ending
from weft.runtime.service import RunService
from weft.server import views
from weft.server.request import ApiCall, ApiReply


async def requested_run(call: ApiCall) -> RunRow:
    """Return the run that the path names. Raises NotFound."""
    return await call.service.row(RunId(call.parameters["id"]))


async def parse_place(service: RunService, text: str, what: str) -> tuple[RunRow, str]:
    """Return the run and the place of an id ``RUN:PLACE``. Raises NotFound."""
    found = await split_place(service, text)
    if found is None:
        raise NotFound(f"There is no {what} {text[:100]!r}.")
    return found


async def result(call: ApiCall) -> ApiReply:
    """Return how the run ended, after waiting for it if asked to. The status is 202 if it has not ended yet."""
    wait = min(call.query_as(views.ResultQuery).wait, call.services.limits.wait_seconds)
    row = await requested_run(call)
    ending = await _ending(call.service, row, wait)
    if ending is None:
        now = await call.service.row(row.id)
        return ApiReply(views.Result(id=row.id, status=now.status), 202)  # type: ignore[arg-type]
    return ApiReply(
        views.Result(
            id=row.id,
            status=ending.status,  # type: ignore[arg-type]
            output=Raw(ending.output) if ending.status == "completed" else None,
            failure=ending.failure,
            reason=ending.reason if ending.status in ("cancelled", MOVED) else None,
        )
    )


async def _ending(service: RunService, row: RunRow, wait: float) -> Ending | None:
    if row.status not in OVER_STATUSES and not wait:
        return None
    try:
        return await service.ending(row.id, timeout=max(wait, 0.1))
    except TimeoutError:
        return None


async def explain_now(call: ApiCall) -> Explanation:
    """Explain what the run waits for, since when, and what would unblock it."""
    row = await requested_run(call)
    try:
        return await explain_read(call.service, row, *await call.services.viewed.newest(call.service, row))
    except NotFound:
        # The run may have been deleted meanwhile.
        await requested_run(call)
        raise
