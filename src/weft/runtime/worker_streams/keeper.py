"""Look after published tasks: settle those of dead and slow workers, publish missing ones again, remove unwanted ones.

One host at a time does this. Entries are read before rows, and a row is written before its entry. So an entry without a
row is unwanted. A row without an entry may be about to get one, so its task is published again only after a lease.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

import msgspec

from weft.core.ids import RunUid
from weft.ports.tasks import STREAM, TaskOffer
from weft.ports.worker_streams import StreamEntry
from weft.runtime.shared import Offered
from weft.runtime.worker_streams.overdue import OverdueTasks
from weft.runtime.worker_streams.parts import StreamParts
from weft.runtime.worker_streams.publish import StreamPublisher
from weft.runtime.worker_streams.tokens import Identity, claimed_ticket, offer_identity
from weft.tokens import InvalidToken

log = logging.getLogger("weft")

PER_ROUND = 100
ROWS_MAX = 1_000_000
_decode = msgspec.json.Decoder(Offered).decode


class StreamKeeper:
    """Settles, publishes again or removes the tasks that would otherwise wait forever."""

    def __init__(self, parts: StreamParts, publisher: StreamPublisher) -> None:
        self._parts = parts
        self._publisher = publisher
        self._overdue = OverdueTasks(parts)
        self._missed: dict[Identity, float] = {}
        """When the entry of each row was first missing, on the monotonic clock."""
        self._again: set[Identity] = set()
        """Tasks that were published again."""

    async def run(self, streams: Sequence[str]) -> None:
        """Look at all published tasks once."""
        server = self._parts.server
        streams = await self._parts.prepare(streams)
        for stream in streams:
            await self.expire(stream)
        published = {stream: await server.published(stream) for stream in streams}
        await self._overdue.end(published)
        held = {
            stream: {number: _claimed_identity(entry.token) for number, entry in entries.items()}
            for stream, entries in published.items()
        }
        taken = await self._parts.store.tasks.taken_by([STREAM], limit=ROWS_MAX, with_body=False)
        if len(taken) == ROWS_MAX:
            return  # nothing is known about entries whose rows were not read
        await self._finish_unwanted([offer for _, offer in taken if offer.unwanted])
        wanted = {offer_identity(offer): offer for _, offer in taken if not offer.unwanted}
        await self._remove_entries(held, wanted)
        await self._publish_missing_again({identity for found in held.values() for identity in found.values()}, wanted)

    async def expire(self, stream: str) -> None:
        """Settle tasks as lost if their workers have not touched them for a lease."""
        parts = self._parts
        while True:
            entries = await parts.server.claim_idle(stream, idle_ms=parts.lease_ms, count=PER_ROUND, bytes_max=0)
            for entry in entries:
                await self._settle_lost(entry)
            await parts.server.remove(stream, [entry.id for entry in entries])
            if len(entries) < PER_ROUND:
                return

    async def _settle_lost(self, entry: StreamEntry) -> None:
        parts, token = self._parts, entry.fields.get(b"token", b"").decode(errors="replace")
        try:
            ticket = await parts.tokens.open(token, now_s=parts.clock.now_ms() // 1000, may_expire=False)
        except InvalidToken:
            ticket = None
        if ticket is None or ticket.stream != entry.stream:
            parts.throttled_log.warn("weft: removed an entry from %s that was not published there", entry.stream)
        elif await parts.settle_lost(ticket.offer()):
            log.warning("weft: the stream worker of task %d of run %s is gone", ticket.task, ticket.uid)

    async def _finish_unwanted(self, offers: Sequence[TaskOffer]) -> None:
        """Free the places of withdrawn tasks that have a limit per key. Their workers cannot be stopped."""
        if offers:
            await self._parts.store.tasks.finish(STREAM, offers)

    async def _remove_entries(
        self, held: Mapping[str, Mapping[str, Identity | None]], wanted: Collection[Identity]
    ) -> None:
        """Remove the entries of tasks that have ended, or that nobody wants any more."""
        for stream, entries in held.items():
            ids = [number for number, identity in entries.items() if identity is not None and identity not in wanted]
            await self._parts.server.remove(stream, ids)
            self._parts.counts.add("withdrawn", len(ids))

    async def _publish_missing_again(
        self, held: Collection[Identity | None], wanted: Mapping[Identity, TaskOffer]
    ) -> None:
        """Publish tasks again if their entries were missing for a lease."""
        now = self._parts.clock.monotonic()
        self._missed = {identity: self._missed.get(identity, now) for identity in wanted if identity not in held}
        self._again.intersection_update(wanted)
        due = [identity for identity, since in self._missed.items() if (now - since) * 1000 >= self._parts.lease_ms]
        for start in range(0, len(due), PER_ROUND):
            await self._publish_again(due[start : start + PER_ROUND])

    async def _publish_again(self, missing: Sequence[Identity]) -> None:
        """Publish tasks again, or settle them as lost if they were published again before or must not be twice."""
        again: list[TaskOffer] = []
        for uid in dict.fromkeys(identity[0] for identity in missing):
            for offer in await self._parts.store.tasks.rows(RunUid(uid)):
                identity = offer_identity(offer)
                if identity not in missing:
                    continue
                if identity in self._again or _decode(offer.body).effect.policy.effect == "irreversible":
                    await self._parts.settle_lost(offer)
                else:
                    again.append(offer)
        added = await self._publisher.add(again)
        self._again.update(map(offer_identity, added))
        self._parts.counts.add("again", len(added))
        if added:
            log.warning("weft: published %d tasks again whose entries were missing in Redis", len(added))
        for identity in missing:
            del self._missed[identity]


def _claimed_identity(token: str) -> Identity | None:
    ticket = claimed_ticket(token)
    return ticket.identity if ticket is not None else None
