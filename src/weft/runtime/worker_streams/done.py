"""Take in the answers of stream workers: each is settled in the store first, and removed from its stream then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.step_logs import LogBatch, LogLimits, NewLine
from weft.ports.worker_streams import NewEntry, StreamEntry
from weft.runtime.shared import Offered
from weft.runtime.worker_streams.answers import TaskAnswer, read_answer
from weft.runtime.worker_streams.failures import BadAnswer
from weft.runtime.worker_streams.parts import StreamParts
from weft.runtime.worker_streams.tokens import TaskTicket

log = logging.getLogger("weft")

PER_ROUND = 100
AT_ONCE = 16
"""How many answers are settled at the same time."""
IDLE_MS = 30_000
"""After this time, an answer that another host has read and not settled is taken over."""
BAD_KEPT = 1_000
"""How many answers that could not be read are kept: the newest."""
BAD_CHARS = 10_000
"""How much is kept of each of their fields."""
BAD_FIELDS = (b"token", b"status", b"result", b"result_ref", b"error", b"metadata")
_decode = msgspec.json.Decoder(Offered).decode


class AnswerReader:
    """Settles answers."""

    def __init__(self, parts: StreamParts, host: HostId, logs: LogLimits | None, wake: Callable[[], None]) -> None:
        """``logs`` says how many lines of steps are kept; None for none. ``wake`` tells the host about new mail."""
        self._parts = parts
        self._host = HostId(f"{host}/streams")
        self._logs = logs
        self._wake = wake
        self._batches = 0

    async def read(self, streams: Sequence[str], *, wait_ms: int) -> int:
        """Wait for answers on these streams, and take them in. Returns how many."""
        return await self.take_in(await self._parts.server.read(streams, count=PER_ROUND, wait_ms=wait_ms))

    async def take_over(self, streams: Sequence[str]) -> int:
        """Take in answers that another host has read and not settled. Returns how many."""
        taken = [
            await self.take_in(await self._parts.server.claim_idle(stream, idle_ms=IDLE_MS, count=PER_ROUND))
            for stream in streams
        ]
        return sum(taken)

    async def take_in(self, entries: Sequence[StreamEntry]) -> int:
        """Settle answers, and remove them from their streams. Returns how many there were."""
        for start in range(0, len(entries), AT_ONCE):
            async with asyncio.TaskGroup() as group:
                for entry in entries[start : start + AT_ONCE]:
                    group.create_task(self._take_in(entry))
        for stream, part in groupby(sorted(entries, key=attrgetter("stream")), key=attrgetter("stream")):
            await self._parts.server.remove(stream, [entry.id for entry in part])
        if entries:
            self._wake()
        return len(entries)

    async def _take_in(self, entry: StreamEntry) -> None:
        parts = self._parts
        try:
            answer = await read_answer(parts, entry)
        except BadAnswer as error:
            await self._set_aside(entry, error)
            return
        if answer.fault is not None:
            await self._set_aside(entry, answer.fault, answer.ticket)
        line = await self._metadata_line(answer)
        if not await parts.settle(answer.ticket.offer(), answer.report):
            parts.counts.add("old")
            ticket = answer.ticket
            log.info("weft: dropped an answer to task %d of run %s: nobody waits for it", ticket.task, ticket.uid)
            return
        parts.counts.add("answered")
        if line is not None and self._logs is not None:
            self._batches += 1
            await parts.store.step_logs.write(LogBatch(host=self._host, number=self._batches, lines=[line]), self._logs)

    async def _set_aside(self, entry: StreamEntry, error: BadAnswer, ticket: TaskTicket | None = None) -> None:
        """Keep an answer that cannot be used, for people."""
        parts = self._parts
        parts.throttled_log.warn("weft: an answer on %s cannot be used: %s", entry.stream, error)
        fields = {
            name.decode(): entry.fields[name][: 4 * BAD_CHARS].decode(errors="replace")[:BAD_CHARS]
            for name in BAD_FIELDS
            if name in entry.fields
        }
        about = {
            "why": str(error),
            "code": error.code,
            "stream": entry.stream,
            "id": entry.id,
            "bytes": str(entry.size),
        }
        run = {"uid": ticket.uid, "task": str(ticket.task)} if ticket is not None else {}
        await parts.server.add([NewEntry(parts.names.bad, {**fields, **about, **run}, keep=BAD_KEPT)])
        parts.counts.add("bad")

    async def _metadata_line(self, answer: TaskAnswer) -> NewLine | None:
        """Return the metadata of an answer as a line of its step. The row that says which step is still there."""
        if not answer.metadata or self._logs is None:
            return None
        ticket = answer.ticket
        for offer in await self._parts.store.tasks.rows(RunUid(ticket.uid)):
            if offer.task == ticket.task:
                effect = _decode(offer.body).effect
                return NewLine(
                    uid=offer.uid,
                    at=Millis(self._parts.clock.now_ms()),
                    place=effect.location,
                    attempt=effect.attempt + effect.delivery - 1,
                    level=logging.INFO,
                    source="worker",
                    text=answer.metadata,
                )
        return None
