"""The tree of a run: its history, and below it the runs that it started."""

from __future__ import annotations

import msgspec

from weft.core.ids import RunId
from weft.errors import NotFound
from weft.observe.history import History, read_history
from weft.observe.operations import Operation
from weft.ports.store import RunRow
from weft.runtime.service import RunService

DEPTH_MAX = 20
RUNS_MAX = 10_000
OPERATIONS_MAX = 1_000_000


class RunTree(msgspec.Struct, frozen=True):
    """A run with its history and its child runs."""

    row: RunRow
    history: History
    operations: list[Operation]
    """The newest operation of each location. If there are too many, only the last ones."""
    children: dict[str, RunTree]
    """The child runs by id, up to the limit of the reader."""
    left_out: int
    """The number of operations and child runs that are omitted."""

    def histories(self) -> dict[str, History]:
        """Return the histories of all runs below this one, by id."""
        histories: dict[str, History] = {}
        for run_id, child in self.children.items():
            histories |= {run_id: child.history, **child.histories()}
        return histories


class TreeReader:
    """Reads one tree. ``runs_max`` limits the number of runs, and ``operations_max`` the operations of each run."""

    def __init__(self, service: RunService, *, runs_max: int = RUNS_MAX, operations_max: int = OPERATIONS_MAX) -> None:
        self._service = service
        self._runs_left = runs_max
        self._operations_max = operations_max

    async def read(self, row: RunRow, depth: int = DEPTH_MAX) -> RunTree:
        """Read a run and the runs below it, down to ``depth`` levels."""
        self._runs_left -= 1
        history = await read_history(self._service, row)
        current = history.current()
        operations = current[-self._operations_max :]
        left_out = len(current) - len(operations)
        children: dict[str, RunTree] = {}
        for operation in operations:
            if not operation.child or operation.child in children:
                continue
            if not depth or self._runs_left <= 0:
                left_out += 1
                continue
            child = await self._row(operation.child)
            if child is not None:
                children[operation.child] = await self.read(child, depth - 1)
        return RunTree(row, history, operations, children, left_out)

    async def _row(self, run_id: str) -> RunRow | None:
        try:
            return await self._service.row(RunId(run_id))
        except NotFound:
            return None
