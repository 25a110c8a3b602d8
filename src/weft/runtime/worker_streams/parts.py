"""What the parts that publish tasks and take in answers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.core import commands as c
from weft.core.ids import EntryId
from weft.ports.clock import Clock, Ids
from weft.ports.store import Mail, Store
from weft.ports.tasks import STREAM, TaskOffer
from weft.ports.worker_streams import StreamServer
from weft.runtime.surroundings import Surroundings
from weft.runtime.throttled_log import ThrottledLog
from weft.runtime.values import ValueStore
from weft.runtime.worker_streams.counts import StreamCounts
from weft.runtime.worker_streams.names import StreamNames
from weft.runtime.worker_streams.tokens import StreamTokens
from weft.stores.redis.streams import RedisStreams

Answer = c.ReportTaskSucceeded | c.ReportTaskFailed | c.ReportTaskLost


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamParts:
    """The store, the server, and what is known about both."""

    store: Store
    server: StreamServer
    tokens: StreamTokens
    names: StreamNames
    clock: Clock
    ids: Ids
    values: ValueStore
    counts: StreamCounts
    throttled_log: ThrottledLog
    lease_ms: int
    """How long a worker may leave its task untouched."""

    @staticmethod
    def of(given: Surroundings, clock: Clock, values: ValueStore, throttled_log: ThrottledLog) -> StreamParts:
        """Return the parts of a host. They connect to Redis when they are first used."""
        settings, store = given.settings, given.store
        return StreamParts(
            store=store,
            server=RedisStreams(settings.redis),
            tokens=StreamTokens(store.access),
            names=StreamNames(settings.redis_prefix),
            clock=clock,
            ids=given.ids,
            values=values,
            counts=StreamCounts(),
            throttled_log=throttled_log,
            lease_ms=int(settings.stream_lease_seconds * 1000),
        )

    async def prepare(self, streams: Sequence[str]) -> list[str]:
        """Make streams that are missing. Returns those that can be used; what is on the others waits."""
        others = set(await self.server.prepare(streams))
        self.counts.others = (self.counts.others - set(streams)) | others
        if others:
            self.throttled_log.warn("weft: streams for workers: %s", self.counts.problem)
        return [stream for stream in streams if stream not in others]

    async def settle(self, offer: TaskOffer, report: Answer) -> bool:
        """Remove the row of a task and report to its run. Returns False if the row is gone."""
        mail = Mail(id=self.ids.new(), to=offer.uid, body=c.encode(report), at=self.clock.now_ms())
        return await self.store.tasks.settle(STREAM, offer, mail)

    async def settle_lost(self, offer: TaskOffer) -> bool:
        """Report that the worker of a task is gone. Returns False if nobody waits for the task."""
        lost = c.ReportTaskLost(EntryId(offer.task), offer.attempt, offer.delivery)
        if not await self.settle(offer, lost):
            return False
        self.counts.add("lost")
        return True
