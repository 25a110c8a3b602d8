"""Find runs, show one, and wait for its result."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.ids import Millis, RunId
from weft.errors import NotFound, RunUnreadable, StoreError
from weft.observe.changes import changes_of
from weft.observe.event_parts import Unfolding, read_parts
from weft.observe.explain import explain
from weft.observe.explanation import Explanation
from weft.observe.fork_line import read_fork_line
from weft.observe.progress import progress_of
from weft.observe.runs import split_place, try_read_run
from weft.ports.store import MOVED, OVER_STATUSES, RunQuery, RunRow
from weft.runtime.run.append_extras import FORKED_FROM
from weft.runtime.runs import Ending
from weft.runtime.service import RunService
from weft.runtime.unreadable import readable
from weft.server import views
from weft.server.live.frames import event_view
from weft.server.problems import problem_of as shown
from weft.server.request import ApiCall, Reply


async def requested_run(call: ApiCall) -> RunRow:
    """Return the run that the path names. Raises NotFound."""
    return await call.service.row(RunId(call.parameters["id"]))


async def parse_place(service: RunService, text: str, what: str) -> tuple[RunRow, str]:
    """Return the run and the place of an id ``RUN:PLACE``. Raises NotFound."""
    found = await split_place(service, text)
    if found is None:
        raise NotFound(f"There is no {what} {text[:100]!r}.")
    return found


async def list_runs(call: ApiCall) -> views.Runs:
    """Return a page of runs, newest first."""
    asked = call.query_as(views.RunsQuery)
    service = call.service
    parent = (await service.row(RunId(asked.parent))).uid if asked.parent is not None else None
    where = dict(_pair(text) for text in asked.where)
    if asked.forks is not None:
        where[FORKED_FROM] = (await service.row(RunId(asked.forks))).uid
    page = await service.search(
        RunQuery(
            workflow=asked.workflow,
            status=asked.status,
            since=Millis(int(asked.since.timestamp() * 1000)) if asked.since is not None else None,
            where=where,
            id_prefix=asked.prefix,
            parent=parent,
            internal=asked.all,
            limit=asked.limit,
            after=asked.cursor,
        )
    )
    return views.Runs([views.run_view(row) for row in page.rows], page.cursor)


def _pair(text: str) -> tuple[str, Any]:
    """Read ``name=value``; the value is JSON if it can be read as JSON."""
    name, _, value = text.partition("=")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value


async def show_run(call: ApiCall) -> views.RunDetail:
    """Return one run with its input and result."""
    row = await requested_run(call)
    service = call.service
    machine, problem = await try_read_run(service, row)
    if problem is not None:
        return await _unreadable(service, row, problem)
    started = await service.reader.started_with(row)
    parent = await service.store.directory.row(row.parent) if row.parent is not None else None
    ending = await service.ending(row.id, timeout=0.1) if row.status in OVER_STATUSES else None
    line = await read_fork_line(service, row)
    view = views.run_view(row)
    return views.RunDetail(
        **{name: getattr(view, name) for name in view.__struct_fields__},
        input=Raw(await service.values.load(bytes(started.input))),
        output=Raw(ending.output) if ending is not None and ending.status == "completed" else None,
        failure=ending.failure if ending is not None else None,
        parent=parent.id if parent is not None else None,
        forked_from=views.ForkPoint(line.original, line.seq) if line.original is not None else None,
        forks=line.forks,
        steps_done=machine.state.steps_done if machine is not None and row.seq else 0,
        progress=progress_of(machine) if machine is not None and row.seq else [],
    )


async def _unreadable(service: RunService, row: RunRow, problem: RunUnreadable) -> views.RunDetail:
    """Return the data of an unreadable run that is still known: its row, and its input if that can be read."""
    raw_input = b"null"
    with contextlib.suppress(StoreError, NotFound):
        raw_input = await service.values.load(bytes((await service.reader.started_with(row)).input))
    parent = await service.store.directory.row(row.parent) if row.parent is not None else None
    view = views.run_view(row)
    fields = {name: getattr(view, name) for name in view.__struct_fields__}
    return views.RunDetail(
        **fields | {"fault": row.fault or problem.message},
        input=Raw(raw_input),
        output=None,
        failure=None,
        parent=parent.id if parent is not None else None,
        steps_done=0,
        problem=shown(problem),
    )


async def list_events(call: ApiCall) -> views.Events:
    """Return a page of the log."""
    asked = call.query_as(views.EventsQuery)
    row = await requested_run(call)
    stored, problem = await readable(call.service.store.log, row, after=asked.after, limit=asked.limit)
    more = len(stored) == asked.limit and stored[-1].seq < row.seq
    return views.Events(
        [event_view(part) for part in await read_parts(call.service, row, stored, Unfolding())],
        stored[-1].seq if more else None,
        shown(problem) if problem is not None else None,
    )


async def list_changes(call: ApiCall) -> views.Changes:
    """Return what people have changed in a run."""
    row = await requested_run(call)
    return views.Changes([event_view(part) async for part in changes_of(call.service, row)])


async def result(call: ApiCall) -> Reply:
    """Return how the run ended, after waiting for it if asked to. The status is 202 if it has not ended yet."""
    wait = min(call.query_as(views.ResultQuery).wait, call.services.limits.wait_seconds)
    row = await requested_run(call)
    ending = await _ending(call.service, row, wait)
    if ending is None:
        now = await call.service.row(row.id)
        return Reply(views.Result(id=row.id, status=now.status), 202)  # type: ignore[arg-type]
    return Reply(
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
        return await explain(call.service, row)
    except NotFound:
        # The run may have been deleted meanwhile.
        await requested_run(call)
        raise
