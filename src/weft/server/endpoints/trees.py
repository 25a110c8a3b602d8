"""The tree of a run: what it recorded, place by place, and its child runs below it."""

from __future__ import annotations

from msgspec import Raw

from weft.core.ids import RunId
from weft.errors import NotFound
from weft.observe.history import Operation, read_history
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.server import views
from weft.server.endpoints.runs import found
from weft.server.request import ApiCall

RUNS_MAX = 200


async def show_tree(call: ApiCall) -> views.TreeView:
    """The run and those it started, as deep as is asked for."""
    asked = call.asked(views.TreeQuery)
    return await _tree(call.service, await found(call), asked.depth, asked.limit, [RUNS_MAX])


async def _tree(service: RunService, row: RunRow, depth: int, limit: int, room: list[int]) -> views.TreeView:
    """``room``: how many runs may still be shown; counted down by all branches together."""
    room[0] -= 1
    operations = (await read_history(service, row)).current()
    shown = operations[-limit:]
    left_out = len(operations) - len(shown)
    children: list[views.TreeView] = []
    for operation in shown:
        if not operation.child:
            continue
        if not depth or room[0] <= 0:
            left_out += 1
            continue
        try:
            child = await service.row(RunId(operation.child))
        except NotFound:
            continue
        children.append(await _tree(service, child, depth - 1, limit, room))
    places = [_place(operation) for operation in shown]
    return views.TreeView(run=views.run_view(row), places=places, children=children, left_out=left_out)


def _place(operation: Operation) -> views.PlaceView:
    return views.PlaceView(
        place=operation.location,
        kind=operation.kind,
        status=operation.status,
        started_at=views.known_moment(operation.started),
        ended_at=views.moment(operation.ended),
        due_at=views.moment(operation.due) if operation.status == "open" else None,
        what=operation.what,
        attempts=operation.attempts,
        rounds=operation.rounds,
        output=Raw(operation.output) if operation.status == "done" else None,
        failure=operation.failure,
        child=operation.child,
    )
