"""The run log of a hot store: plain hops go to the WAL, everything else to the durable store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from weft.core.ids import Epoch, HostId, RunUid, Seq
from weft.ports.retention import AuditEntry
from weft.ports.store import Append, Loaded, Outcome, Release, RunLog, RunRow, StoredEvent
from weft.stores.hot.hot_lane import HotLane, entries
from weft.stores.hot.owned_runs import OwnedRuns
from weft.stores.hot.tails import Tails
from weft.stores.hot.through_lane import ThroughLane
from weft.stores.judge import check_numbering


class HotLog:
    """The run log of a hot store. Implements ``HotRuns`` too."""

    commits_in_place = False

    def __init__(self, log: RunLog, hot: HotLane, through: ThroughLane, runs: OwnedRuns, tails: Tails) -> None:
        self._log = log
        self._hot = hot
        self._through = through
        self._runs = runs
        self._tails = tails
        self.is_hot = hot.is_hot
        self.flush = through.flush

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self._log, name)  # whatever has nothing to do with tails

    @property
    def hot(self) -> HotLog:
        return self

    def has_tail(self, uid: RunUid) -> bool:
        return uid in self._tails

    @property
    def on_drained(self) -> Callable[[RunUid, Seq | None], None]:
        return self._through.on_drained

    @on_drained.setter
    def on_drained(self, told: Callable[[RunUid, Seq | None], None]) -> None:
        self._through.on_drained = told

    @property
    def on_lost(self) -> Callable[[RunUid, Exception | None], None]:
        return self._through.on_lost

    @on_lost.setter
    def on_lost(self, told: Callable[[RunUid, Exception | None], None]) -> None:
        self._through.on_lost = told

    # --- writing --------------------------------------------------------------------------------------------------

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        hot = [append for append in batch if self._hot.is_hot(append)] if host == self._runs.host else []
        if not hot:
            return await self._through.commit(batch, host)
        if len(hot) == len(batch):
            return await self.hop(batch, host)
        names = {append.uid for append in hot}
        rest = [append for append in batch if append.uid not in names]
        hopped, written = await asyncio.gather(self.hop(hot, host), self._through.commit(rest, host))
        outcomes = dict(zip([append.uid for append in (*hot, *rest)], (*hopped, *written), strict=True))
        return [outcomes[append.uid] for append in batch]

    async def hop(self, batch: Sequence[Append], host: HostId) -> list[Outcome]:
        """Write hops to the WAL, or to the durable store if the WAL does not take them."""
        check_numbering(batch)
        outcomes: list[Outcome] = []
        for part, packed in entries(batch):
            if await self._hot.write(part, packed):
                outcomes += [Outcome.ACCEPTED] * len(part)
            else:
                outcomes += await self._through.commit(part, host)
        return outcomes

    async def write_together(self, batch: Sequence[Append], entry: AuditEntry | None = None) -> Sequence[Outcome]:
        uids = [append.uid for append in batch]
        async with self._drained_runs(uids):
            outcomes = await self._log.write_together(batch, entry)
            for uid in uids:
                self._runs.forget(uid)
        return outcomes

    @asynccontextmanager
    async def _drained_runs(self, uids: Sequence[RunUid]) -> AsyncIterator[None]:
        """Drain runs, and keep their hops out of the WAL to the end of the block. If it fails, nothing is known."""
        await self._hot.hold(uids)
        try:
            await self._through.flush_each(uids)
            try:
                yield
            except BaseException:
                for uid in uids:
                    self._runs.forget(uid)
                raise
        finally:
            self._runs.let_go(uids)

    # --- ownership ------------------------------------------------------------------------------------------------

    async def claim(
        self, uids: Sequence[RunUid], host: HostId, *, expected: Mapping[RunUid, Epoch]
    ) -> Sequence[RunRow]:
        """Claim runs. The tail of an own run is drained under its old epoch first, or nobody could drain it later."""
        async with self._drained_runs(uids):
            claimed = await self._log.claim(uids, host, expected=expected)
            for row in claimed:
                self._runs.learn(row)
        return claimed

    async def release(self, releases: Sequence[Release]) -> Sequence[Outcome]:
        async with self._drained_runs([release.uid for release in releases]):
            outcomes = await self._log.release(releases)
            for release, outcome in zip(releases, outcomes, strict=True):
                if outcome is Outcome.ACCEPTED:
                    self._runs.forget(release.uid)
        return outcomes

    # --- reading --------------------------------------------------------------------------------------------------

    async def load(self, uid: RunUid, *, fold: int) -> Loaded | None:
        await self._through.flush_each([uid])
        loaded = await self._log.load(uid, fold=fold)
        if loaded is not None and uid not in self._runs:
            self._runs.learn(loaded.row)
        return loaded

    async def events(self, uid: RunUid, *, after: Seq, limit: int) -> Sequence[StoredEvent]:
        await self._through.flush_each([uid])
        return await self._log.events(uid, after=after, limit=limit)

    async def refers_to(self, uid: RunUid, digest: str) -> bool:
        await self._through.flush_each([uid])
        return await self._log.refers_to(uid, digest)
