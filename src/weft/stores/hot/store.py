"""A hot store: a store that wraps a durable one, with a write-ahead log in Redis before it.

Redis holds nothing but the WAL: no state, inbox, timer, id or key of a run. So there is one place that grants epochs
and one way to change a run, and every port but a few is that of the durable store. Rules: docs/internals/hot-path.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from weft.errors import UsageError
from weft.ports.hosts import Hosts
from weft.ports.step_logs import StepLogs
from weft.ports.store import Directory, RunLog, Store, TaskQueue
from weft.ports.streams import Streams
from weft.ports.wal_server import WalServer
from weft.ports.wals import Wals
from weft.stores.hot.hot_lane import HotLane
from weft.stores.hot.keeper import WalKeeper
from weft.stores.hot.log import HotLog
from weft.stores.hot.owned_runs import OwnedRuns
from weft.stores.hot.policy import EVENT, HotPolicy
from weft.stores.hot.ports import HotDirectory, HotHosts, HotStepLogs, HotStreams, HotTasks
from weft.stores.hot.tails import Tails
from weft.stores.hot.through_lane import ThroughLane


class HotStore:
    """A durable store with a WAL before it. One process has one, with one host."""

    log: RunLog
    directory: Directory
    hosts: Hosts
    tasks: TaskQueue
    streams: Streams
    step_logs: StepLogs

    def __init__(self, durable: Store, server: WalServer, *, policy: HotPolicy = EVENT) -> None:
        """``durable`` must be able to record WALs. Nothing is connected before ``open``."""
        self.durable = durable
        self.server = server
        self.policy = policy

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self.durable, name)  # a port that has nothing to do with tails

    @property
    def offset_ms(self) -> int:
        """Return the offset of the durable store's clock. It is asked for with every event."""
        return self.durable.offset_ms

    async def open(self) -> None:
        await self.durable.open()
        if self.durable.wals is None:
            raise UsageError(
                f"The store {self.durable.url} cannot have a write-ahead log before it.",
                hint="Keep runs in Postgres, or unset `hot`.",
            )
        self._bind_parts(self.durable.wals)

    def _bind_parts(self, wals: Wals) -> None:
        durable = self.durable
        tails, runs = Tails(), OwnedRuns()
        self.tails = tails
        self.hot_lane = hot = HotLane(self.server, tails, runs, self.policy)
        self.through_lane = through = ThroughLane(durable, tails, runs, self.policy)
        hot.on_hops = through.on_hops
        through.on_room = hot.on_drained
        wals.server, wals.on_asked = self.server, through.drain_now
        self.keeper = WalKeeper(wals, self.server, hot, through, runs, living=durable.hosts.list_living)
        self.log = cast("RunLog", HotLog(durable.log, hot, through, runs, tails))
        self.directory = cast("Directory", HotDirectory(durable.directory, through))
        self.hosts = cast("Hosts", HotHosts(durable.hosts, through, self.keeper))
        self.tasks = cast("TaskQueue", HotTasks(durable.tasks, through, runs))
        self.streams = cast("Streams", HotStreams(durable.streams, through))
        self.step_logs = cast("StepLogs", HotStepLogs(durable.step_logs, through))

    async def close(self) -> None:
        """Close everything. A host that has not left has its last hops in the WAL, for whoever takes over."""
        if "keeper" in self.__dict__:
            await self.keeper.stop()
            await self.through_lane.stop()
        await self.server.close()
        await self.durable.close()
