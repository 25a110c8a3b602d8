"""The other ports of a hot store, where tails matter: what leaves the process, or is read here, is drained first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.ports.hosts import Hosts
from weft.ports.step_logs import LogBatch, LogLimits, StepLogs
from weft.ports.store import Directory, RunRow, TaskQueue
from weft.ports.streams import NewChunk, Streams
from weft.ports.tasks import Exchanged, TaskOffer
from weft.stores.hot.keeper import WalKeeper
from weft.stores.hot.owned_runs import OwnedRuns
from weft.stores.hot.through_lane import ThroughLane


class _Passing:
    """A port whose other methods are those of the durable store."""

    def __init__(self, inner: Any, through: ThroughLane) -> None:
        self._inner = inner
        self._through = through

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)


class HotDirectory(_Passing):
    """The index of runs. Rows of runs with a tail here are drained before they are read."""

    _inner: Directory

    async def row(self, uid: RunUid) -> RunRow | None:
        await self._through.flush_each([uid])
        return await self._inner.row(uid)

    async def find(self, id: RunId) -> RunRow | None:
        row = await self._inner.find(id)
        if row is None or not self._through.has_tail(row.uid):
            return row
        return await self.row(row.uid)


class HotTasks(_Passing):
    """Tasks for other processes. None is offered before the event that schedules it is in the durable store.

    The numbers of tasks that are lost are used again: the result of one would be taken for another's.
    """

    _inner: TaskQueue

    def __init__(self, inner: TaskQueue, through: ThroughLane, runs: OwnedRuns) -> None:
        super().__init__(inner, through)
        self._runs = runs

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        await self._through.flush_each([task.uid for task in tasks])
        await self._inner.offer(tasks)

    async def exchange(
        self, host: HostId, finished: Sequence[TaskOffer], offered: Sequence[TaskOffer], *, now: Millis, most: int
    ) -> Exchanged:
        await self._through.flush_each([task.uid for task in offered])
        return await self._inner.exchange(host, finished, offered, now=now, most=most)

    async def admit(self, host: HostId, run: TaskOffer, now: Millis) -> bool:
        admitted = await self._inner.admit(host, run, now)
        if not admitted:
            self._runs.forget(run.uid)
        return admitted


class HotStreams(_Passing):
    """Output streams. Output is shown to others, so what the run did before it is drained first."""

    _inner: Streams

    async def write(self, chunks: Sequence[NewChunk]) -> None:
        # A run that writes to the stream of its root puts its own uid before the key.
        uids = [uid for chunk in chunks for uid in (chunk.uid, RunUid(chunk.key.partition("/")[0]))]
        await self._through.flush_each(uids)
        await self._inner.write(chunks)


class HotStepLogs(_Passing):
    """What steps print. It is shown to others, so what the run did before it is drained first."""

    _inner: StepLogs

    async def write(self, batch: LogBatch, limits: LogLimits) -> None:
        await self._through.flush_each([line.uid for line in batch.lines])
        await self._inner.write(batch, limits)


class HotHosts(_Passing):
    """The hosts. The one of this process has a WAL from when it joins until it leaves."""

    _inner: Hosts

    def __init__(self, inner: Hosts, through: ThroughLane, keeper: WalKeeper) -> None:
        super().__init__(inner, through)
        self._keeper = keeper

    async def join(self, host: HostId, *, lease_ms: int, about: Mapping[str, Any] | None = None) -> None:
        await self._inner.join(host, lease_ms=lease_ms, about=about)
        await self._keeper.start(host, lease_ms / 1000)

    async def leave(self, host: HostId) -> None:
        await self._keeper.leave(host)
        await self._inner.leave(host)
