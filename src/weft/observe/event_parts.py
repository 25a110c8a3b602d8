"""The log of a run for views: every record as the events that it stands for.

All parts of a record have its number, and views distinguish them by the number of the part. The number of a part is
never used as input. The rules are in docs/internals/events.md.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec
from msgspec import Raw

from weft.cache import BoundedCache
from weft.core import events as e
from weft.core.unfold import COMBINED, ViewEvent, unfold
from weft.ports.store import RunRow, StoredEvent
from weft.runtime.service import RunService
from weft.runtime.unreadable import readable_events

RESULTS_MAX = 1_000
"""The number of results that are cached. Others are read again."""
_PREFIX = b'{"kind":"'
_encode = msgspec.json.Encoder().encode


class EventPart(msgspec.Struct, frozen=True):
    """One event of a view. ``part`` is its position in its record, from 1 on; 0 if it is the only event."""

    seq: int
    part: int
    at: int
    event: ViewEvent
    body: bytes
    is_last: bool = True
    """Whether this is the last part of its record."""

    def split(self) -> tuple[str, Raw]:
        """Return the kind of the event, and the rest of it as JSON."""
        return split_event(self.body)


class Unfolding:
    """Unfolds the records of one log in order. It caches the results that later records refer to."""

    def __init__(self) -> None:
        self._results: BoundedCache[int, Raw] = BoundedCache(RESULTS_MAX)
        self.keeps_results = True
        """Whether later records may refer to results. Only those of goal runs do."""

    def events(self, stored: StoredEvent) -> Sequence[ViewEvent]:
        """Unfold the next record. Returns its events, without their JSON."""
        return self._unfold(e.decode(stored.body), stored.seq)

    def add(self, stored: StoredEvent) -> list[EventPart]:
        """Unfold the next record. Returns its events with their JSON."""
        record = e.decode(stored.body)
        events = self._unfold(record, stored.seq)
        if len(events) == 1:
            body = stored.body if events[0] is record else _encode(events[0])
            return [EventPart(stored.seq, 0, stored.at, events[0], body)]
        return [
            EventPart(stored.seq, part, stored.at, event, _encode(event), part == len(events))
            for part, event in enumerate(events, 1)
        ]

    def _unfold(self, record: e.AnyEvent, seq: int) -> Sequence[ViewEvent]:
        kind = type(record)
        if kind in COMBINED:
            return unfold(record, self._results.get)
        if self.keeps_results and (kind is e.TaskSucceeded or kind is e.ChildEnded):
            self._results.put(seq, record.output)  # type: ignore[union-attr]  # both have one
        return (record,)

    def missing_record(self, stored: StoredEvent) -> int:
        """Return the number of the record whose result a record refers to; 0 if no result is missing."""
        if not stored.body.startswith(b'{"kind":"step_completed"'):
            return 0
        record = e.decode(stored.body)
        assert isinstance(record, e.StepCompleted)
        return 0 if self._results.get(record.of) is not None else record.of


async def read_parts(
    service: RunService, row: RunRow, page: Sequence[StoredEvent], unfolding: Unfolding
) -> list[EventPart]:
    """Unfold a page of a log. Results that it refers to are read from the store if necessary."""
    parts: list[EventPart] = []
    for stored in page:
        missing = unfolding.missing_record(stored)
        for before in (await readable_events(service.store.log, row, after=missing - 1, limit=1))[0] if missing else ():
            unfolding.add(before)
        parts += unfolding.add(stored)
    return parts


async def follow_parts(
    service: RunService, row: RunRow, *, after: int = 0, follow: bool = False
) -> AsyncIterator[EventPart]:
    """Iterate over the events of a run. With ``follow``, also over future events. Raises RunUnreadable."""
    unfolding = Unfolding()
    async for stored in service.reader.events(row, after=after, follow=follow):
        for part in await read_parts(service, row, [stored], unfolding):
            yield part


def kind_of(event: type) -> str:
    """Return the kind of the events of a class."""
    return str(event.__struct_config__.tag)  # type: ignore[attr-defined]  # all events are structs


def split_event(body: bytes) -> tuple[str, Raw]:
    """Return the kind of an event, and the rest of it as JSON."""
    if body.startswith(_PREFIX):
        end = body.index(b'"', len(_PREFIX))
        rest = body[end + 1 :]
        return body[len(_PREFIX) : end].decode(), Raw(b"{}" if rest == b"}" else b"{" + rest[1:])
    read = msgspec.json.decode(body)
    return read.pop("kind"), Raw(_encode(read))
