"""Take over the WALs of dead hosts, before anybody claims their runs.

A WAL is sealed, read, committed in the name of its host and marked as drained. Every process may do this, at the same
time as others. If Redis does not answer, the WAL is marked as drained after a while although nobody has read it: its
runs go on from the durable log, and what may be lost is recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from weft.core.ids import HostId, RunId
from weft.core.plurals import pluralize
from weft.errors import Corrupt, NewerSchema, Unavailable
from weft.ports.boundary import boundary
from weft.ports.clock import Clock
from weft.ports.store import Append, Store
from weft.ports.wal_server import WalServer
from weft.ports.wals import LOSS_RUNS_MAX, Loss, LossReason, Wal, Wals
from weft.stores.hot.entries import decode
from weft.stores.hot.name_of_dead import LostEntries, commit_in_the_name_of

log = logging.getLogger("weft")

PATIENCE_SECONDS = 60.0
"""How long to wait for a Redis server that does not answer."""
RETRY_SECONDS = 5.0
"""How long not to ask a server again that has not answered."""
ANSWER_SECONDS = 1.0
"""How long to wait for its first answer, because the other duties of the host wait too."""


class _SealedWal(msgspec.Struct):
    """A WAL as it was when it was sealed."""

    head: int
    """The number of its last entry."""
    entries: list[tuple[int, Sequence[Append]]] = []
    damaged: set[int] = set()
    """The entries that cannot be read."""


@runtime_checkable
class _StoreWithWal(Protocol):
    """A store with Redis before it."""

    durable: Store


class Takeover:
    """Drains the WALs of dead hosts. Remembers how long it has waited for each."""

    def __init__(self, store: Store, wals: Wals, server: WalServer | None, clock: Clock) -> None:
        """``server`` is None if this process has no Redis. Then it can only wait."""
        self._store = store
        self._wals = wals
        self._server = server
        self._clock = clock
        self._waiting: dict[int, float] = {}
        """Since when each WAL could not be read."""
        self._asks_again_at = float("-inf")
        self.lost = 0
        """How many runs of dead hosts have lost events, or may have, as far as this process has found."""

    @classmethod
    def before(cls, store: Store, clock: Clock) -> Takeover | None:
        """Return what takes over the WALs before a store; None if there cannot be any."""
        durable = store.durable if isinstance(store, _StoreWithWal) else store
        return None if durable.wals is None else cls(durable, durable.wals, durable.wals.server, clock)

    async def take_over(self, dead: Sequence[HostId]) -> Sequence[Loss]:
        """Drain the WALs of these hosts. Returns the losses that this call has recorded.

        A WAL that cannot be read now is left for the next call. Raises the errors of the durable store.
        """
        wals = await self._wals.undrained(dead) if dead else ()
        self._waiting = {wal.id: self._waiting[wal.id] for wal in wals if wal.id in self._waiting}
        losses = [await self._drain_wal(wal) for wal in wals]
        return [loss for loss in losses if loss is not None]

    async def _drain_wal(self, wal: Wal) -> Loss | None:
        try:
            found = await self._seal_and_read(wal)
        except (Unavailable, NewerSchema) as error:
            return await self._wait_for_server(wal, error)
        if found is None:
            return await self._give_up_wal(wal, LossReason.GONE)
        lost = await commit_in_the_name_of(self._store, wal.host, found.entries)
        boundary("takeover.committed")
        return await self._mark_drained(wal, await self._find_loss(wal, found, lost))

    # --- in Redis -----------------------------------------------------------------------------------------------------

    async def _seal_and_read(self, wal: Wal) -> _SealedWal | None:
        """Seal a WAL and read it. Returns None if this is the right server and does not have it.

        Raises Unavailable, or NewerSchema if a newer Weft has written it.
        """
        server = self._server
        if server is None:
            raise Unavailable("This host has no Redis.")
        if self._clock.monotonic() < self._asks_again_at:
            raise Unavailable("Redis did not answer a moment ago.")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                head = await server.seal(wal.id)
                identity = await server.identity() if head is None else None
        except (Unavailable, TimeoutError) as error:
            self._asks_again_at = self._clock.monotonic() + RETRY_SECONDS
            raise Unavailable(f"Redis does not answer ({error}).") from error
        boundary("takeover.sealed")
        if head is None:
            if identity is None or identity != await self._wals.redis_id():
                raise Unavailable("This Redis was emptied, or is not the one that all hosts have agreed on.")
            return None
        found = _SealedWal(head)
        for number, entry in await server.read(wal.id):
            try:
                found.entries.append((number, decode(entry)))
            except Corrupt as error:
                log.warning("weft: entry %d of the write-ahead log %d: %s", number, wal.id, error)
                found.damaged.add(number)
        boundary("takeover.read")
        return found

    async def _delete_wal(self, wal: Wal) -> None:
        if self._server is None:
            return
        try:
            await self._server.delete(wal.id)
        except Unavailable as error:
            log.debug("weft: the write-ahead log %d was not deleted (%s)", wal.id, error)

    # --- in the durable store -----------------------------------------------------------------------------------------

    async def _wait_for_server(self, wal: Wal, error: Exception) -> Loss | None:
        """Wait for the server, and force the WAL when that was long enough."""
        now = self._clock.monotonic()
        since = self._waiting.setdefault(wal.id, now)
        if now - since >= PATIENCE_SECONDS:
            return await self._give_up_wal(wal, LossReason.UNREACHABLE)
        if now == since:
            log.warning(
                "weft: the write-ahead log %d of the dead host %s cannot be read: %s Waiting up to %.0f s for it, then "
                "the runs of that host go on from the durable store.",
                wal.id,
                wal.host,
                error,
                PATIENCE_SECONDS,
            )
        return None

    async def _give_up_wal(self, wal: Wal, reason: LossReason) -> Loss | None:
        """Give up a WAL that nobody can read. Runs that do not name it have lost nothing."""
        runs = await self._wals.attached(wal.id, limit=LOSS_RUNS_MAX)
        loss = self._new_loss(wal, reason, 0, runs) if runs else None
        return await self._mark_drained(wal, loss, forced=True)

    async def _find_loss(self, wal: Wal, found: _SealedWal, lost: LostEntries) -> Loss | None:
        missing = max(0, wal.last - found.head) + len(found.damaged)
        names = {row.id for uid in lost.runs if (row := await self._store.directory.row(uid)) is not None}
        if missing:
            names.update(await self._wals.attached(wal.id, limit=LOSS_RUNS_MAX))
            return self._new_loss(wal, LossReason.MISSING, missing + len(lost.entries), sorted(names))
        if not names:
            return None
        return self._new_loss(wal, LossReason.REFUSED, len(lost.entries), sorted(names))

    def _new_loss(self, wal: Wal, reason: LossReason, batches: int, runs: Sequence[RunId]) -> Loss:
        now = self._clock.now_ms()
        return Loss(wal=wal.id, host=wal.host, at=now, reason=reason, batches=batches, runs=runs[:LOSS_RUNS_MAX])

    async def _mark_drained(self, wal: Wal, loss: Loss | None, *, forced: bool = False) -> Loss | None:
        """Mark a WAL as drained. If others were quicker, they have judged what is lost."""
        marked = await self._wals.mark_drained(wal.id, forced=forced, loss=loss)
        boundary("takeover.marked")
        await self._delete_wal(wal)
        if not marked:
            return None
        if loss is None:
            log.info("weft: the write-ahead log %d of the dead host %s is drained", wal.id, wal.host)
            return None
        self.lost += len(loss.runs)
        log.error("weft: %s", loss_sentence(loss))
        return loss


_REASONS = {
    LossReason.UNREACHABLE: "nobody could read it for a minute after its host had died",
    LossReason.GONE: "Redis does not have it any more, and its host is dead",
    LossReason.MISSING: "Redis has lost entries of it, and its host is dead",
    LossReason.REFUSED: "its runs had already gone on without them",
}


def loss_sentence(loss: Loss) -> str:
    """Return what was lost, why, and which runs it concerns, as one sentence."""
    batches = f"at least {pluralize(loss.batches, 'batch')} of" if loss.batches else "hops that were not drained from"
    return (
        f"{batches} the write-ahead log {loss.wal} of host {loss.host} may be lost: {_REASONS[loss.reason]}. "
        f"These runs go on from their last durable event: {', '.join(loss.runs)}"
    )
