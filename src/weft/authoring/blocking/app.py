"""Apps for programs without an event loop: ``app.sync``."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar, overload

from weft.agents.budget import Budget
from weft.authoring.blocking.calls import LoopCalls
from weft.authoring.blocking.handles import BlockingHandle
from weft.authoring.blocking.runs import AsyncRuns, BlockingRuns
from weft.authoring.blocking.thread import LoopThread
from weft.authoring.handles import Handle
from weft.authoring.import_time import refuse_import_time
from weft.authoring.policies import Duration
from weft.authoring.runnable import Runnable

R = TypeVar("R")
Call = Coroutine[Any, Any, R]


class AsyncApp(AsyncRuns, Protocol):
    """What ``app.sync`` uses of the app."""

    @property
    def calls(self) -> LoopCalls | None:
        """The calls of the event loop on which the app is hosted now; None if it is not hosted."""
        ...

    @property
    def start(self) -> Callable[..., Coroutine[Any, Any, Handle[Any]]]: ...

    @property
    def get(self) -> Callable[..., Handle[Any]]: ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...


class BlockingApp(BlockingRuns[AsyncApp]):
    """An app as programs without an event loop use it: ``app.sync``. Every method blocks; any thread may call it.

    If this process does not host the app yet, the first call hosts it in a thread of its own, until ``close``, the end
    of ``with app.sync:``, or the end of the program.
    """

    def __init__(self, app: AsyncApp) -> None:
        self._app = app
        super().__init__(LoopThread("weft-host", self._hosted), self._calls_of_host, lambda: app, "app.sync")

    def __repr__(self) -> str:
        return f"{self._app!r}.sync"

    @contextlib.asynccontextmanager
    async def _hosted(self) -> AsyncIterator[LoopCalls]:
        async with self._app:
            assert self._app.calls is not None, "the app is hosted here"
            yield self._app.calls

    def _calls_of_host(self) -> LoopCalls:
        calls = self._app.calls
        if calls is not None:
            calls.refuse_after_fork()
            return calls
        refuse_import_time("app.sync")
        return self._thread.open()

    @overload
    def start(
        self,
        call: Call[R],
        /,
        *,
        id: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        queue: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> BlockingHandle[R]: ...
    @overload
    def start(
        self,
        workflow: Runnable[R],
        input: Mapping[str, Any] = ...,
        /,
        *,
        id: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        queue: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> BlockingHandle[R]: ...
    @overload
    def start(
        self,
        workflow: str,
        input: Mapping[str, Any] = ...,
        /,
        *,
        id: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        queue: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> BlockingHandle[Any]: ...
    def start(self, call: Any, input: Mapping[str, Any] | None = None, /, **options: Any) -> Any:
        """Start a run, or find the one with this id and input, and return its handle. The run is durable by then.

        The arguments are those of ``app.start``.
        """
        try:
            started = self._run("start", lambda app: app.start(call, input or {}, **options))
        except BaseException:
            if inspect.iscoroutine(call):
                call.close()
            raise
        return self._blocking(started.id, started.codec)

    @overload
    def get(self, id: str, workflow: Runnable[R]) -> BlockingHandle[R]: ...
    @overload
    def get(self, id: str, workflow: str | None = None) -> BlockingHandle[Any]: ...
    def get(self, id: str, workflow: Any = None) -> BlockingHandle[Any]:
        """Return the handle of a run. With ``workflow``, the result has the type that the workflow returns."""
        return BlockingHandle(self._calls, lambda run_id: self._app.get(run_id, workflow), id)
