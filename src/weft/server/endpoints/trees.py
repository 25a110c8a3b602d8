"""Show the tree of a run: its recorded operations, and its child runs below it."""

from __future__ import annotations

from msgspec import Raw

from weft.observe.operations import Operation
from weft.observe.run_tree import RunTree, TreeReader
from weft.server import views
from weft.server.endpoints.runs import requested_run
from weft.server.request import ApiCall

RUNS_MAX = 200


async def show_tree(call: ApiCall) -> views.TreeView:
    """Return the run and those it started, to the requested depth."""
    query = call.query_as(views.TreeQuery)
    reader = TreeReader(call.service, runs_max=RUNS_MAX, operations_max=query.limit)
    return _tree_view(await reader.read(await requested_run(call), query.depth))


def _tree_view(tree: RunTree) -> views.TreeView:
    return views.TreeView(
        run=views.run_view(tree.row),
        places=[_place(operation) for operation in tree.operations],
        children=[_tree_view(child) for child in tree.children.values()],
        left_out=tree.left_out,
    )


def _place(operation: Operation) -> views.PlaceView:
    return views.PlaceView(
        place=operation.location,
        kind=operation.kind,
        status=operation.status,
        started_at=views.required_time(operation.started),
        ended_at=views.api_time(operation.ended),
        due_at=views.api_time(operation.due) if operation.status == "open" else None,
        what=operation.what,
        attempts=operation.attempts,
        rounds=operation.rounds,
        output=Raw(operation.output) if operation.status == "done" else None,
        failure=operation.failure,
        child=operation.child,
    )
