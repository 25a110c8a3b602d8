"""End attempts that take longer than their timeout: a worker that hangs may touch its task for ever.

An attempt begins when its entry is given to a worker. A host sees that when it looks, so no attempt is ended early.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from weft.core.ids import RunUid
from weft.ports.worker_streams import PublishedEntry
from weft.runtime.shared import Offered
from weft.runtime.worker.failures import report_timeout
from weft.runtime.worker_streams.parts import StreamParts
from weft.runtime.worker_streams.tokens import claimed_ticket, offer_identity
from weft.tokens import InvalidToken

log = logging.getLogger("weft")

_decode = msgspec.json.Decoder(Offered).decode


class OverdueTasks:
    """Remembers since when tasks with a timeout are with workers."""

    def __init__(self, parts: StreamParts) -> None:
        self._parts = parts
        self._given: dict[tuple[str, str], float] = {}
        """When each entry was first seen with a worker, by stream and id, on the monotonic clock."""

    async def end(self, published: Mapping[str, Mapping[str, PublishedEntry]]) -> None:
        """End overdue attempts. ``published`` are all entries, by stream and id. They stay."""
        limits = {
            (stream, number): ticket.timeout_s
            for stream, entries in published.items()
            for number, entry in entries.items()
            if entry.is_given and (ticket := claimed_ticket(entry.token)) is not None and ticket.timeout_s
        }
        now = self._parts.clock.monotonic()
        self._given = {place: self._given.get(place, now) for place in limits}
        for (stream, number), since in self._given.items():
            if now - since >= limits[stream, number]:
                await self._end_attempt(stream, published[stream][number].token)

    async def _end_attempt(self, stream: str, token: str) -> None:
        parts = self._parts
        try:
            ticket = await parts.tokens.open(token, now_s=parts.clock.now_ms() // 1000, may_expire=False)
        except InvalidToken:
            return  # anybody may write an entry; what it claimed counts for nothing
        if ticket.stream != stream:
            return
        for offer in await parts.store.tasks.rows(RunUid(ticket.uid)):
            if offer_identity(offer) == ticket.identity:
                effect = _decode(offer.body).effect
                if await parts.settle(offer, report_timeout(effect)):
                    parts.counts.add("overdue")
                    log.warning("weft: the stream worker of task %d of run %s took too long", offer.task, offer.uid)
