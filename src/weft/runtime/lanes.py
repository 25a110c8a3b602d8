"""The lanes in which a host commits: one, or two if the store has a hot path."""

from __future__ import annotations

from weft.core.ids import HostId
from weft.ports.store import Store
from weft.runtime.background import Failed
from weft.runtime.commit import TURNS_MAX, GroupWriter, RunQueue
from weft.runtime.streams import StreamWriter
from weft.runtime.throttled_log import ThrottledLog


class Lanes:
    """The writers of a host. ``committer`` is the one whose commits are durable when they succeed."""

    def __init__(
        self,
        store: Store,
        host: HostId,
        failed: Failed,
        throttled_log: ThrottledLog,
        streams: StreamWriter,
        *,
        short: bool,
    ) -> None:
        """With ``short``, turns and commits share callbacks of the loop."""
        self.hot = store.log.hot
        args = (store.log, store.blobs, host, failed, throttled_log)
        self.committer = GroupWriter(*args, in_place=short, store_output=streams.store)
        self._hops = GroupWriter(*args, in_place=short, others=self.committer) if self.hot is not None else None
        self._first = self._hops or self.committer
        self.queue = RunQueue(self._first, TURNS_MAX if short else 1, in_place=short)

    def waiting(self) -> int:
        """Return the number of runs that have something for the next commits."""
        return self._first.waiting + (self.committer.waiting if self._hops is not None else 0)

    def start(self) -> None:
        self.committer.start()
        if self._hops is not None:
            self._hops.start()

    async def stop(self) -> None:
        """Stop committing, after the current commits have ended."""
        if self._hops is not None:
            await self._hops.stop()
        await self.committer.stop()
