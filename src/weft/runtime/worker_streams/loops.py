"""Run the streams of a host: publish, take in answers, and look after what is out, each in a loop of its own.

Redis may be away, slow or emptied at any time. Then the loops wait, and nothing else in the host does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from weft.core.ids import HostId
from weft.errors import StoreError
from weft.ports.worker_streams import StreamsInCluster
from weft.runtime.background import BackgroundLoop, Failed
from weft.runtime.duties.scheduler import MAIL, RUNS, TASKS, Wakeups
from weft.runtime.settings import Settings
from weft.runtime.worker_streams.done import AnswerReader
from weft.runtime.worker_streams.failures import PrefixTaken
from weft.runtime.worker_streams.keeper import StreamKeeper
from weft.runtime.worker_streams.parts import StreamParts
from weft.runtime.worker_streams.publish import StreamPublisher
from weft.stores.redis.task_end import end_tasks

log = logging.getLogger("weft")

WAIT_MS = 1_000
"""How long one call waits for answers."""
PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX = 0.1, 2.0
KEEPER_ROUNDS = 3
"""A host that looks after the tasks is replaced if it missed this many rounds."""
OWNER_BYTES = 16


class WorkerStreams:
    """The streams of one host."""

    def __init__(
        self,
        parts: StreamParts,
        host: HostId,
        settings: Settings,
        *,
        queues: Callable[[], Sequence[str]],
        wakeups: Wakeups,
    ) -> None:
        """``queues`` returns the queues that are streams now."""
        self._parts = parts
        self._host = host
        self._queues = queues
        self._every = settings.scan_seconds
        self.counts = parts.counts if settings.redis else None
        """What happened so far; None without Redis."""
        self._publisher = StreamPublisher(parts)
        self._reader = AnswerReader(parts, host, settings.step_logs, partial(wakeups.wake, MAIL, RUNS, TASKS))
        self._keeper = StreamKeeper(parts, self._publisher)
        self._woken = asyncio.Event()
        self._owner = ""
        self._loops: list[BackgroundLoop] = []

    def start(self, failed: Failed) -> None:
        """Start the loops, if there is a Redis. ``failed`` is called if one keeps ending."""
        if self.counts is None:
            return
        self._loops = [
            BackgroundLoop("publishing on streams", self._publish_loop, failed, end=end_tasks),
            BackgroundLoop("the answers on streams", self._read_loop, failed, end=end_tasks),
            BackgroundLoop("the keeper of streams", self._keep_loop, failed, end=end_tasks),
        ]
        for loop in self._loops:
            loop.start()

    async def stop(self) -> None:
        """Stop the loops, and close the connections. What is out stays out."""
        for loop in self._loops:
            await loop.stop()
        with contextlib.suppress(StoreError):
            await self._parts.server.close()

    async def wake(self) -> None:
        """Publish now: tasks may wait."""
        self._woken.set()

    # --- loops ------------------------------------------------------------------------------------------------------

    async def _publish_loop(self) -> None:
        async def publish() -> None:
            if self._queues():
                await self._check_owner()
                await self._publisher.publish(self._queues())

        while True:
            self._woken.clear()
            await self._retry_later(publish)
            await self._woken.wait()

    async def _read_loop(self) -> None:
        async def read() -> None:
            streams = self._done_streams()
            if not streams or not self._owner:
                await asyncio.sleep(self._every)
                return
            usable = await self._parts.prepare(streams)
            if not usable:
                await asyncio.sleep(self._every)
                return
            await self._reader.read(usable, wait_ms=WAIT_MS)

        while True:
            await self._retry_later(read)

    async def _keep_loop(self) -> None:
        seconds = self._parts.lease_ms / 3000

        async def keep() -> None:
            await self._publisher.learn()
            streams = self._task_streams()
            if not streams:
                return
            await self._check_owner()
            await self._reader.take_over(await self._parts.prepare(self._done_streams()))
            held = await self._parts.server.set_if_missing(
                self._parts.names.keeper, self._host, expire_ms=int(seconds * 1000) * KEEPER_ROUNDS
            )
            if held == self._host:
                await self._keeper.run(streams)

        while True:
            await self._retry_later(keep)
            await asyncio.sleep(seconds)

    def _task_streams(self) -> list[str]:
        own = {self._parts.names.tasks(queue) for queue in self._queues()}
        return sorted(own | self._publisher.streams)

    def _done_streams(self) -> list[str]:
        return sorted({self._parts.names.done_of(stream) for stream in self._task_streams()})

    async def _check_owner(self) -> None:
        """Make sure that no other deployment uses these streams. Raises PrefixTaken."""
        parts = self._parts
        own = (await parts.store.access.seed("streams", secrets.token_bytes(OWNER_BYTES))).hex()
        found = await parts.server.set_if_missing(parts.names.owner, own)
        if found == own:
            self._owner, parts.counts.trouble = own, ""
            return
        self._owner = ""
        raise PrefixTaken(
            f"The streams with the prefix {parts.names.prefix!r} in this Redis belong to another deployment.",
            hint=f"Set another WEFT_REDIS_PREFIX, or delete the key {parts.names.owner} if that deployment is gone.",
        )

    async def _retry_later(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something that needs Redis and the store, and wait a moment if one of them does not answer."""
        pause = PAUSE_SECONDS_FIRST
        while True:
            try:
                await work()
                return
            except* (StoreError, PrefixTaken, StreamsInCluster) as errors:
                error = errors.exceptions[0]
                self._parts.counts.trouble = str(error)
                self._parts.throttled_log.warn("weft: streams for workers: %s", error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
