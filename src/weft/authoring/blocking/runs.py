"""What blocking apps and blocking clients have in common: their thread, and the runs, schedules and versions."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from weft.authoring.blocking.calls import LoopCalls, refuse_running_loop
from weft.authoring.blocking.handles import BlockingBulk, BlockingHandle, BlockingSchedules, BlockingWorkflows
from weft.authoring.blocking.methods import Blocking, blocking
from weft.authoring.blocking.thread import LoopThread
from weft.authoring.bulk import Bulk
from weft.authoring.handles import Handle
from weft.authoring.runnable import Runnable
from weft.authoring.schedules import Schedules
from weft.authoring.workflow_versions import Workflows
from weft.observe.diff import Diff
from weft.runtime.bulk_plan import BulkResult
from weft.steps.codec import Codec

if TYPE_CHECKING:
    from weft.runtime.bundles.importer import Imported

R = TypeVar("R")
Since = datetime | timedelta | str


class AsyncRuns(Protocol):
    """What apps and clients have in common."""

    @property
    def schedules(self) -> Schedules: ...

    @property
    def workflows(self) -> Workflows: ...

    def run_handle(self, id: str, result: Codec[R], /) -> Handle[R]:
        """Return the handle of a run whose result has this type."""
        ...

    def list(
        self,
        *,
        workflow: str | None = None,
        status: str | None = None,
        since: Since | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Handle[Any]]: ...

    async def bulk(
        self,
        verb: str,
        *ids: str,
        workflow: str | None = None,
        status: str | None = None,
        since: Since | None = None,
        parent: str | None = None,
        where: Mapping[str, Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> Bulk: ...

    async def diff(self, a: str, b: str, *, at_a: int | None = None, at_b: int | None = None) -> Diff:
        """Compare two runs, each up to an event, or two versions or files, as ``app.diff`` does. Raises NotFound."""
        ...

    async def export(
        self, id: str, path: str | Path, *, tree: bool = False, streams: bool = False, redact: Sequence[str] = ()
    ) -> None:
        """Write a run to a file, with ``tree`` all runs below it too, as ``app.export`` does."""
        ...

    async def move(self, id: str, path: str | Path, *, to: str = "", reason: str = "") -> None:
        """Move a run and all runs below it to another store, as ``app.move`` does. Raises Refused."""
        ...

    async def import_(self, path: str | Path, *, adopt: bool = False) -> Imported:
        """Read runs from a file that ``export`` or ``move`` wrote, as ``app.import_`` does."""
        ...


S = TypeVar("S", bound=AsyncRuns)


class BlockingRuns(Blocking[S]):
    """The runs of an app or client, and the thread in which it is open: ``with …:``, or ``open`` and ``close``."""

    def __init__(self, thread: LoopThread, calls: Callable[[], LoopCalls], target: Callable[[], S], name: str) -> None:
        super().__init__(calls, target, name)
        self._thread = thread
        self._entered = 0
        self._counting = threading.Lock()

    # --- opening --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open it in a thread of its own now. Otherwise, the first call does it."""
        refuse_running_loop(f"{self._name}.open()")
        self._calls()

    def close(self) -> None:
        """Close it and end its thread. Calls that still wait raise NotRunning. The next call opens it again."""
        refuse_running_loop(f"{self._name}.close()")
        self._thread.close()

    def __enter__(self) -> Self:
        self.open()
        with self._counting:
            self._entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._counting:
            self._entered -= 1
            is_last = not self._entered
        if is_last:
            self.close()

    # --- runs -----------------------------------------------------------------------------------------------------

    def list(
        self,
        *,
        workflow: str | Runnable[Any] | None = None,
        status: str | None = None,
        since: Since | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Iterator[BlockingHandle[Any]]:
        """List runs, newest first."""
        name = workflow.name if isinstance(workflow, Runnable) else workflow
        found = self._iterate("list", lambda runs: runs.list(workflow=name, status=status, since=since, where=where))
        return (self._blocking(handle.id, handle.codec) for handle in found)

    def bulk(
        self,
        verb: str,
        *ids: str,
        workflow: str | Runnable[Any] | None = None,
        status: str | None = None,
        since: Since | None = None,
        parent: str | None = None,
        where: Mapping[str, Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> BlockingBulk:
        """Count what a verb would do to these runs, or to those that the filter finds; ``apply`` of the answer does it.

        Raises:
            UsageError: there is no such verb or option, or neither ids nor a filter are given.
            LimitExceeded: these are too many runs.
        """
        name = workflow.name if isinstance(workflow, Runnable) else workflow
        bulk = self._run(
            "bulk",
            lambda runs: runs.bulk(
                verb, *ids, workflow=name, status=status, since=since, parent=parent, where=where, options=options
            ),
        )
        return BlockingBulk(self._calls, bulk, lambda run: self._blocking(run, Codec.of(BulkResult)))

    diff = blocking(AsyncRuns.diff)
    export = blocking(AsyncRuns.export)
    move = blocking(AsyncRuns.move)
    import_ = blocking(AsyncRuns.import_)

    @property
    def schedules(self) -> BlockingSchedules:
        """The schedules of the store or server."""
        untyped: Codec[Any] = Codec.of(Any)
        return BlockingSchedules(
            self._calls, lambda: self._target().schedules, lambda run: self._blocking(run, untyped)
        )

    @property
    def workflows(self) -> BlockingWorkflows:
        """The versions of workflows in the store or on the server, and their tags."""
        return BlockingWorkflows(self._calls, lambda: self._target().workflows, "workflows")

    def _blocking(self, run_id: str, result: Codec[R]) -> BlockingHandle[R]:
        return BlockingHandle(self._calls, lambda run: self._target().run_handle(run, result), run_id)
