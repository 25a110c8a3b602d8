"""Publish tasks on streams. A task is taken in the name of the streams first, so its row is there before its entry.

Limits, priorities and times hold as for hosts, because it is the store that hands the tasks out. If the entry cannot be
written, the row waits until the keeper misses the entry.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.core.ids import EntryId
from weft.errors import Corrupt, NotFound, WeftError
from weft.ports.tasks import STREAM, TaskOffer
from weft.ports.worker_streams import NewEntry
from weft.runtime.shared import Offered
from weft.runtime.worker.arguments import arguments_of
from weft.runtime.worker_streams.names import split_tenant
from weft.runtime.worker_streams.parts import StreamParts
from weft.runtime.worker_streams.tokens import VALID_S, TaskTicket
from weft.steps.failures import failure_of

log = logging.getLogger("weft")

PER_ROUND = 100
INPUT_BYTES_MAX = 1024 * 1024
"""A larger input is a blob, and the entry has a reference to it."""

_decode = msgspec.json.Decoder(Offered).decode


class StreamPublisher:
    """Takes tasks and publishes them."""

    def __init__(self, parts: StreamParts) -> None:
        self._parts = parts
        self.streams: set[str] = set()
        """The streams on which tasks were published, as far as this host knows."""

    async def publish(self, queues: Sequence[str]) -> int:
        """Publish the tasks that wait in these queues and that their limits allow. Returns how many."""
        parts, total = self._parts, 0
        while queues:
            offers = await parts.store.tasks.take(
                STREAM, queues=queues, steps=None, now=parts.clock.now_ms(), limit=PER_ROUND
            )
            parts.counts.add("published", len(await self.add(offers)))
            total += len(offers)
            if len(offers) < PER_ROUND and not any(offer.limit for offer in offers):
                break  # keys take turns, so that one call may not bring all that they allow
            if not offers:
                break
        return total

    async def add(self, offers: Sequence[TaskOffer]) -> list[TaskOffer]:
        """Add the entries of tasks to their streams. Returns the tasks that are there now."""
        parts = self._parts
        entries = [(offer, entry) for offer in offers if (entry := await self._make_entry(offer)) is not None]
        streams = list(dict.fromkeys(entry.stream for _, entry in entries))
        # All hosts know the stream before there can be an answer.
        new = [stream for stream in streams if stream not in self.streams]
        if new:
            await self.learn(new)
        # The group begins before the first entry, so it misses none.
        usable = set(await parts.prepare(streams))
        await parts.server.add([entry for _, entry in entries if entry.stream in usable])
        return [offer for offer, entry in entries if entry.stream in usable]

    async def learn(self, new: Sequence[str] = ()) -> None:
        """Add streams to those that all hosts know, and read which these are."""
        self.streams |= await self._parts.server.members(self._parts.names.streams, new)

    async def _make_entry(self, offer: TaskOffer) -> NewEntry | None:
        """Return the entry of a task; None if its input cannot be read, which its run is told."""
        parts, offered = self._parts, _decode(offer.body)
        effect = offered.effect
        tenant, run_id = split_tenant(offered.run_id)
        try:
            raw = await arguments_of(effect, parts.values.load)
        except (Corrupt, NotFound) as error:
            await self._fail_task(offer, effect, error)
            return None
        stream = parts.names.tasks(offer.queue, tenant)
        fields = {
            "token": await parts.tokens.seal(self._make_ticket(offer, effect, tenant, stream)),
            "run_id": run_id,
            "node_id": effect.location,
            "step": effect.step,
            "key": effect.key,
            "attempt": str(effect.attempt),
            **await self._input_fields(raw),
            "timeout_ms": str(effect.policy.timeout_ms),
            "lease_ms": str(parts.lease_ms),
        }
        return NewEntry(stream, {**fields, "traceparent": offered.trace} if offered.trace else fields)

    async def _input_fields(self, raw: bytes) -> dict[str, str]:
        if len(raw) <= INPUT_BYTES_MAX:
            return {"input": raw.decode()}
        return {"input_ref": f"cas://sha256:{await self._parts.values.put(raw)}"}

    def _make_ticket(self, offer: TaskOffer, effect: PerformTask, tenant: str, stream: str) -> TaskTicket:
        now_s = self._parts.clock.now_ms() // 1000
        timeout_s = -(-effect.policy.timeout_ms // 1000)
        return TaskTicket(
            uid=offer.uid,
            task=offer.task,
            attempt=offer.attempt,
            delivery=offer.delivery,
            tenant=tenant,
            stream=stream,
            issued_s=now_s,
            until_s=now_s + (timeout_s or VALID_S),
        )

    async def _fail_task(self, offer: TaskOffer, effect: PerformTask, error: WeftError) -> None:
        """Fail a task that cannot be published."""
        log.warning("weft: %s cannot be published for stream workers: %s", effect.step, error)
        failure = failure_of(error, step=effect.step, attempts=effect.attempt)
        task = EntryId(offer.task)
        await self._parts.settle(
            offer, c.ReportTaskFailed(task, offer.attempt, offer.delivery, failure, retryable=False)
        )
