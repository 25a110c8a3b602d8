"""The log of a run in windows, in both directions, with a sentence and a place for each event."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Raw

from weft.core import values
from weft.core.unfold import ViewEvent
from weft.observe.as_of import as_of
from weft.observe.event_parts import EventPart, Unfolding
from weft.observe.event_records import read_records
from weft.observe.event_text import event_text
from weft.observe.place_log import PartSubject, PlaceLog
from weft.observe.places import RunPlace
from weft.ports.store import RunRow
from weft.server import views
from weft.server.endpoints.runs import requested_run
from weft.server.event_views import Events, EventsQuery, LargeValue, LogEventView
from weft.server.problems import problem_of
from weft.server.request import ApiCall

SCANNED_MAX = 5_000
"""How many events a search for a text goes through in one request. Its page may be empty and still have a cursor."""
READ_AT_ONCE = 200
SLICE = 50
"""How many events are formatted before other requests get a turn."""
NUMBERS_PER_SLICE = 1_000
"""How many numbers of events are compared with a filter before other requests get a turn."""


async def list_events(call: ApiCall) -> Events:
    """Return a window of the log."""
    asked = call.query_as(EventsQuery)
    row = await requested_run(call)
    viewed, problem = await call.services.viewed.get_readable_until(call.service, row, asked.at)
    window = _Window(call, row, viewed.log, asked)
    found = await window.read()
    reaches_end = window.last >= window.end
    return Events(
        events=found,
        after=None if reaches_end else window.last,
        before=window.first if window.first > viewed.log.first else None,
        seq=max(row.seq, viewed.log.seq),
        as_of=views.api_time(as_of(call.service, row)),
        problem=problem_of(problem) if problem is not None and reaches_end and asked.at is None else None,
    )


class _Window:
    """One window: the events between two numbers that match, read from one end."""

    def __init__(self, call: ApiCall, row: RunRow, log: PlaceLog, asked: EventsQuery) -> None:
        self._call = call
        self._row = row
        self._log = log
        self._asked = asked
        self.end = min(log.seq, asked.at if asked.at is not None else log.seq)
        order = asked.order or ("last" if asked.before is not None and not asked.after else "first")
        low, high = max(log.first, asked.after + 1), min(self.end, (asked.before or self.end + 1) - 1)
        numbers = range(low, high + 1)
        self._is_reversed = order == "last"
        self._numbers: Sequence[int] = numbers[::-1] if self._is_reversed else numbers
        self.first, self.last = (min(low, self.end + 1), high) if numbers else (low, min(asked.after, self.end))
        self._unfolding = Unfolding()

    async def read(self) -> list[LogEventView]:
        """Return the matching events, and set the numbers of the first and last event that were looked at."""
        found: dict[int, list[LogEventView]] = {}
        seen = 0
        for batch in self._batches():
            await asyncio.sleep(0)
            views_by_seq = await self._views_of_records(batch)
            for seq in batch:
                seen = seq
                if views_by_seq.get(seq):
                    found[seq] = views_by_seq[seq]
                if len(found) == self._asked.limit:
                    break
            if len(found) == self._asked.limit:
                break
        else:
            seen = self._scanned_to
        if seen:
            if self._is_reversed:
                self.first = seen
            else:
                self.last = seen
        return [view for seq in sorted(found) for view in found[seq]]

    def _batches(self) -> Iterator[list[int]]:
        """Yield the numbers of events that may match, in the order in which they are wanted. Batches may be empty."""
        self._scanned_to = 0
        batch: list[int] = []
        size = READ_AT_ONCE if self._asked.q else self._asked.limit
        scanned = 0
        for looked_at, seq in enumerate(self._numbers, 1):
            self._scanned_to = seq
            if self._may_match(self._log.subjects_of_record(seq)):
                batch.append(seq)
                scanned += 1
            if len(batch) == size or not looked_at % NUMBERS_PER_SLICE:
                yield batch
                batch = []
                if scanned >= SCANNED_MAX:
                    return
        if batch:
            yield batch

    def _may_match(self, subjects: Iterable[PartSubject]) -> bool:
        return any(map(self._is_wanted, subjects))

    def _is_wanted(self, subject: PartSubject) -> bool:
        asked, place = self._asked, subject.place
        of_kind = not asked.kind or subject.kind in asked.kind
        return (
            (of_kind or (place is not None and place.operation.kind in asked.kind))
            and (not asked.mark or (place is not None and self._mark(place) in asked.mark))
            and (asked.place is None or (place is not None and place.number == asked.place))
            and (asked.box is None or (place is not None and place.box == asked.box))
            and (not asked.about or (place is not None and asked.about in (place.operation.location, place.box)))
        )

    def _mark(self, place: RunPlace) -> str:
        standing = place.standing(self.end)
        return standing.mark if standing is not None else ""

    async def _views_of_records(self, numbers: Sequence[int]) -> dict[int, list[LogEventView]]:
        found: dict[int, list[LogEventView]] = {}
        parts = await read_records(self._call.service, self._row, sorted(numbers), self._unfolding)
        for formatted, part in enumerate(parts, 1):
            if not formatted % SLICE:
                await asyncio.sleep(0)
            subjects = self._log.subjects_of_record(part.seq)
            subject = subjects[max(0, part.part - 1)]
            view = _event_view(part, subject)
            if self._is_wanted(subject) and _contains(view, self._asked.q.casefold()):
                found.setdefault(part.seq, []).append(view)
        return found


def _event_view(part: EventPart, subject: PartSubject) -> LogEventView:
    kind, data = part.split()
    place = subject.place
    location = place.operation.location if place is not None else ""
    return LogEventView(
        part.seq,
        views.required_time(part.at),
        kind,
        data,
        part.part,
        text=event_text(part, location),
        number=place.number if place is not None else None,
        place=location,
        box=place.box if place is not None else None,
        large=large_values(part.seq, part.event),
    )


def large_values(seq: int, event: ViewEvent) -> list[LargeValue]:
    """Return the fields of an event that are in blobs."""
    found: list[LargeValue] = []
    for name in event.__struct_fields__:
        raw: Any = getattr(event, name)
        if isinstance(raw, Raw) and values.is_ref(bytes(raw)):
            found.append(LargeValue(name, f"event:{seq}:{name}", values.parse_ref(bytes(raw)).size))
    return found


def _contains(view: LogEventView, text: str) -> bool:
    return not text or any(
        text in one.casefold() for one in (view.text, view.place, view.kind, bytes(view.data).decode())
    )
