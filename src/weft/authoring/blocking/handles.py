"""Handles that block: the runs of ``app.sync`` and ``client.sync``, their bulks and their schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, Unpack

from weft.authoring.blocking.calls import LoopCalls
from weft.authoring.blocking.methods import PAGE, Blocking, blocking
from weft.authoring.bulk import Bulk
from weft.authoring.handles import Event, Handle
from weft.authoring.policies import Duration
from weft.authoring.schedules import Schedules
from weft.authoring.workflow_versions import Workflows
from weft.observe.step_logs import LogLine
from weft.runtime.bulk_plan import BulkResult, RefusedRuns
from weft.runtime.fork_order import ForkOptions
from weft.runtime.schedules import Schedule

R = TypeVar("R")


class BlockingHandle(Blocking[Handle[R]], Generic[R]):
    """A handle of a run whose methods block. When a method returns, its effect is durable."""

    def __init__(self, calls: Callable[[], LoopCalls], run_handle: Callable[[str], Handle[R]], run_id: str) -> None:
        super().__init__(calls, lambda: run_handle(run_id), "handle")
        self.id = run_id
        self._run_handle = run_handle

    def __repr__(self) -> str:
        return f"<weft run {self.id}>"

    def result(self, *, timeout: Duration | None = None) -> R:
        """Wait for the end of the run and return its result. Raises RunFailed, RunCancelled, TimedOut."""
        return self._run("result", lambda handle: handle.result(timeout=timeout))

    def fork(self, *, by: str = "", key: str | None = None, **options: Unpack[ForkOptions]) -> BlockingHandle[R]:
        """Make a new run that shares the past of this one, as ``Handle.fork`` does."""
        forked = self._run("fork", lambda handle: handle.fork(by=by, key=key, **options))
        return BlockingHandle(self._calls, self._run_handle, forked.id)

    def events(self, *, after: int = 0, follow: bool = False) -> Iterator[Event]:
        """Iterate over the log, oldest first. With ``follow``, also over new events until the run ends."""
        page = 1 if follow else PAGE
        return self._iterate("events", lambda handle: handle.events(after=after, follow=follow), page=page)

    def logs(self, *, after: int = 0, follow: bool = False) -> Iterator[LogLine]:
        """Iterate over what steps printed and logged, oldest first. With ``follow``, until the run ends."""
        page = 1 if follow else PAGE
        return self._iterate("logs", lambda handle: handle.logs(after=after, follow=follow), page=page)

    status = blocking(Handle.status)
    send = blocking(Handle.send)
    request = blocking(Handle.request)
    decide = blocking(Handle.decide)
    cancel = blocking(Handle.cancel)
    pause = blocking(Handle.pause)
    resume = blocking(Handle.resume)
    retry = blocking(Handle.retry)
    patch = blocking(Handle.patch)
    undo_patch = blocking(Handle.undo_patch)
    withdraw_patch = blocking(Handle.withdraw_patch)
    patch_requests = blocking(Handle.patch_requests)
    versions = blocking(Handle.versions)
    delete = blocking(Handle.delete)
    keep = blocking(Handle.keep)
    end_keep = blocking(Handle.end_keep)
    set = blocking(Handle.set)
    usage = blocking(Handle.usage)
    raise_budget = blocking(Handle.raise_budget)
    explain = blocking(Handle.explain)


class BlockingBulk(Blocking[Bulk]):
    """The dry run of a verb over many runs, as ``app.sync.bulk`` returns it. Nothing has been changed yet."""

    def __init__(
        self, calls: Callable[[], LoopCalls], bulk: Bulk, handle: Callable[[str], BlockingHandle[BulkResult]]
    ) -> None:
        super().__init__(calls, lambda: bulk, "bulk")
        self._bulk = bulk
        self._handle = handle

    def __repr__(self) -> str:
        return repr(self._bulk)

    @property
    def verb(self) -> str:
        """What would be done to each run."""
        return self._bulk.verb

    @property
    def ids(self) -> Sequence[str]:
        """The runs that were found. The bulk goes through these and no others."""
        return self._bulk.ids

    @property
    def matched(self) -> int:
        """How many runs were found."""
        return self._bulk.matched

    @property
    def would_apply(self) -> int:
        """How many runs would be changed."""
        return self._bulk.would_apply

    @property
    def unchanged(self) -> int:
        """How many runs are already as the verb would leave them."""
        return self._bulk.unchanged

    @property
    def refused(self) -> Sequence[RefusedRuns]:
        """The runs that would refuse, counted by reason."""
        return self._bulk.refused

    def apply(
        self, *, reason: str = "", by: str = "", review: Sequence[str] = (), key: str | None = None
    ) -> BlockingHandle[BulkResult]:
        """Start the run that does it, and return its handle, as ``Bulk.apply`` does."""
        started = self._run("apply", lambda bulk: bulk.apply(reason=reason, by=by, review=review, key=key))
        return self._handle(started.id)


class BlockingSchedules(Blocking[Schedules]):
    """The schedules of a store: ``app.sync.schedules``, ``client.sync.schedules``."""

    def __init__(
        self,
        calls: Callable[[], LoopCalls],
        target: Callable[[], Schedules],
        handle: Callable[[str], BlockingHandle[Any]],
    ) -> None:
        super().__init__(calls, target, "schedules")
        self._handle = handle

    def list(self) -> Iterator[Schedule]:
        """List schedules, newest first, without those that were removed."""
        return self._iterate("list", lambda schedules: schedules.list())

    def trigger(self, name: str) -> BlockingHandle[Any]:
        """Start a run now and return its handle. Raises Refused if the overlap does not allow it."""
        return self._handle(self._run("trigger", lambda schedules: schedules.trigger(name)).id)

    add = blocking(Schedules.add)
    get = blocking(Schedules.get)
    next = blocking(Schedules.next)
    backfill = blocking(Schedules.backfill)
    pause = blocking(Schedules.pause)
    resume = blocking(Schedules.resume)
    remove = blocking(Schedules.remove)


class BlockingWorkflows(Blocking[Workflows]):
    """The versions of workflows and their tags: ``app.sync.workflows``, ``client.sync.workflows``."""

    list = blocking(Workflows.list)
    get = blocking(Workflows.get)
    tags = blocking(Workflows.tags)
    history = blocking(Workflows.history)
    tag = blocking(Workflows.tag)
    patch = blocking(Workflows.patch)
    undo_tag = blocking(Workflows.undo_tag)
    redo_tag = blocking(Workflows.redo_tag)
