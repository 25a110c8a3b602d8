"""Clients for programs without an event loop: ``client.sync``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Protocol

from weft.agents.budget import Budget
from weft.authoring.blocking.calls import LoopCalls
from weft.authoring.blocking.handles import BlockingHandle
from weft.authoring.blocking.methods import blocking
from weft.authoring.blocking.runs import AsyncRuns, BlockingRuns
from weft.authoring.blocking.thread import LoopThread
from weft.authoring.goals import Plan
from weft.authoring.handles import Handle
from weft.authoring.policies import Duration


class AsyncClient(AsyncRuns, Protocol):
    """What ``client.sync`` uses of a client of its own."""

    async def start(
        self,
        workflow: str,
        input: Mapping[str, Any] | None = None,
        /,
        *,
        id: str | None = None,
        version: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> Handle[Any]: ...

    async def plan(self, *goals: str, given: Mapping[str, Any] | Iterable[str] = ()) -> Plan:
        """Return the plan for these goals, with the steps that are registered in the store."""
        ...

    def get(self, id: str) -> Handle[Any]: ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...


class BlockingClient(BlockingRuns[AsyncClient]):
    """A client as programs without an event loop use it: ``with weft.Client(url).sync as client``.

    The first call opens it in a thread of its own, until ``close``, the end of ``with``, or the end of the program.
    """

    def __init__(self, make: Callable[[], AsyncClient]) -> None:
        self._make = make
        self._client: AsyncClient | None = None
        thread = LoopThread("weft-client", self._opened)
        super().__init__(thread, thread.open, self._open_client, "client.sync")

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncIterator[LoopCalls]:
        calls = LoopCalls(asyncio.get_running_loop())
        async with self._make() as self._client:
            try:
                yield calls
            finally:
                calls.close()

    def _open_client(self) -> AsyncClient:
        assert self._client is not None, "calls are made while it is open"
        return self._client

    def start(
        self,
        workflow: str,
        input: Mapping[str, Any] | None = None,
        /,
        *,
        id: str | None = None,
        version: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> BlockingHandle[Any]:
        """Start a run on any host that has this workflow, in its hosted version or in ``version``.

        The run is ``pending`` until a host begins it. If its input has the wrong type, the run fails.
        """
        started = self._run(
            "start",
            lambda client: client.start(
                workflow,
                input,
                id=id,
                version=version,
                existing=existing,
                attributes=attributes,
                delay=delay,
                priority=priority,
                budget=budget,
                run_policies=run_policies,
            ),
        )
        return self._blocking(started.id, started.codec)

    def get(self, id: str) -> BlockingHandle[Any]:
        """Return the handle of a run."""
        return BlockingHandle(self._calls, lambda run_id: self._open_client().get(run_id), id)

    plan = blocking(AsyncClient.plan)
