"""The tree of a run: what it recorded, place by place, and its child runs below it."""

from __future__ import annotations

from msgspec import Raw

from weft.observe.operations import Operation
from weft.observe.run_tree import RunTree, TreeReader
from weft.server import views
from weft.server.endpoints.runs import found
from weft.server.request import ApiCall

RUNS_MAX = 200


async def show_tree(call: ApiCall) -> views.TreeView:
    """Return the run and those it started, as deep as is asked for."""
    asked = call.asked(views.TreeQuery)
    reader = TreeReader(call.service, runs_max=RUNS_MAX, operations_max=asked.limit)
    return _view(await reader.read(await found(call), asked.depth))


def _view(tree: RunTree) -> views.TreeView:
    return views.TreeView(
        run=views.run_view(tree.row),
        places=[_place(operation) for operation in tree.operations],
        children=[_view(child) for child in tree.children.values()],
        left_out=tree.left_out,
    )


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
