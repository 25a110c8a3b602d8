"""Show one run: its status, input and result, its place in its tree, and what the caller may do to it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.machine import Machine
from weft.errors import Failure, NotFound, RunUnreadable, StoreError
from weft.observe.as_of import as_of
from weft.observe.boxes import box_at
from weft.observe.fork_line import read_fork_line
from weft.observe.progress import progress_of
from weft.observe.run_actions import RunAction, RunActions, actions_of
from weft.ports.store import OVER_STATUSES, RunRow
from weft.runtime.runs import Ending
from weft.runtime.service import RunService
from weft.runtime.tenancy import without_prefix
from weft.server import views
from weft.server.endpoints.runs import requested_run
from weft.server.identity import AccessScope, Identity
from weft.server.problems import problem_of
from weft.server.request import ApiCall

ANCESTORS_MAX = 50
SCOPES: dict[str, AccessScope] = {
    "pause": AccessScope.OPERATE,
    "resume": AccessScope.OPERATE,
    "cancel": AccessScope.OPERATE,
    "retry": AccessScope.OPERATE,
    "fork": AccessScope.OPERATE,
    "change": AccessScope.OPERATE,
    "send": AccessScope.START,
    "set": AccessScope.OPERATE,
    "export": AccessScope.READ,
    "move": AccessScope.OPERATE,
    "delete": AccessScope.ADMIN,
    "keep": AccessScope.ADMIN,
}
"""The scope that each action needs. A test compares it with the table of routes."""


async def show_run(call: ApiCall) -> views.RunDetail:
    """Return one run with its input and result."""
    service = call.service
    row, machine, problem, ending = await _read_run_detail(call)
    begun = machine if row.seq else None
    ancestors = await ancestors_of(service, row)
    actions = await actions_of(service, row, begun.state if begun is not None else None)
    fields = msgspec.structs.asdict(views.run_view(row))
    if problem is not None:
        fields |= {"fault": row.fault or problem.message, "problem": problem_of(problem)}
    return views.RunDetail(
        **fields,
        **_ending_fields(row, ending),
        **_progress_fields(begun),
        **await _fork_fields(service, row) if problem is None else {},
        input=Raw(await _input(service, row)),
        parent=ancestors[-1].id if ancestors else None,
        root=ancestors[0].id if ancestors else row.id,
        ancestors=[one.id for one in ancestors],
        version_tags=await _version_tags(service, row),
        actions=allowed_to(call.identity, actions),
        now=views.required_time(service.clock.now_ms()),
        as_of=views.api_time(as_of(service, row)),
    )


async def _read_run_detail(call: ApiCall) -> tuple[RunRow, Machine | None, RunUnreadable | None, Ending | None]:
    """Read a run until its row and its end agree.

    An end is in the store a moment before this host knows of it, and a retry may have undone it.
    """
    while True:
        row = await requested_run(call)
        machine, problem = await call.services.viewed.newest(call.service, row)
        if problem is not None or row.status not in OVER_STATUSES:
            return row, machine, problem, None
        with contextlib.suppress(TimeoutError):
            return row, machine, None, await call.service.ending(row.id, timeout=0.1)


def _ending_fields(row: RunRow, ending: Ending | None) -> dict[str, Any]:
    if ending is None:
        return {"output": None, "failure": None}
    return {
        "output": Raw(ending.output) if ending.status == "completed" else None,
        "failure": _failure_view(row, ending.failure) if ending.failure is not None else None,
    }


def _failure_view(row: RunRow, failure: Failure) -> views.RunFailure:
    fields = {name: getattr(failure, name) for name in failure.__struct_fields__}
    return views.RunFailure(**fields, box=box_at(row.style, failure.location))


def _progress_fields(machine: Machine | None) -> dict[str, Any]:
    if machine is None:
        return {"steps_done": 0}
    return {"steps_done": machine.state.steps_done, "progress": progress_of(machine)}


async def _fork_fields(service: RunService, row: RunRow) -> dict[str, Any]:
    line = await read_fork_line(service, row)
    origin = views.ForkPoint(line.original, line.seq) if line.original is not None else None
    return {"forked_from": origin, "forks": line.forks}


async def _input(service: RunService, row: RunRow) -> bytes:
    """Return the input of a run; null if the log is so damaged that it cannot be read."""
    with contextlib.suppress(StoreError, NotFound):
        return await service.values.load(bytes((await service.reader.started_with(row)).input))
    return b"null"


async def ancestors_of(service: RunService, row: RunRow) -> Sequence[RunRow]:
    """Return the runs above a run, the root first. Those above a run that was deleted are left out."""
    found: list[RunRow] = []
    above = row.parent
    while above is not None and len(found) < ANCESTORS_MAX:
        parent = await service.store.directory.row(above)
        if parent is None:
            break
        found.append(parent)
        above = parent.parent
    return found[::-1]


async def _version_tags(service: RunService, row: RunRow) -> list[str]:
    return [tag.key.tag for tag in await service.tags.list(row.workflow) if tag.version == row.version]


def allowed_to(caller: Identity, actions: RunActions) -> RunActions:
    """Return the actions that the caller's scopes allow, with reasons in the words of its tenant."""
    found = msgspec.structs.asdict(actions)
    for name, action in found.items():
        if not caller.may(SCOPES[name]):
            found[name] = RunAction(allowed=False, why_not=f"This needs the scope {SCOPES[name]}.")
        elif action.why_not and caller.tenant:
            found[name] = RunAction(allowed=False, why_not=without_prefix(action.why_not, caller.tenant))
    return RunActions(**found)
