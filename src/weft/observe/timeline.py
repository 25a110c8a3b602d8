"""The timeline of a run: when each box worked, as spans, or as counts where there are too many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from weft.observe.pictures import Mark
from weft.observe.places import RunPlace

SPANS_PER_BOX_MAX = 50


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """The time in which a place stood in one way. ``until`` is None while it still does."""

    number: int
    mark: Mark
    since: int
    until: int | None = None
    retries: bool = False
    """Whether an attempt failed at the end of the span."""


class TimelineRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A box of the timeline: its spans, or if there are many places, how many were open in each column."""

    box: str
    places: int
    since: int
    until: int | None = None
    spans: list[Span] = []
    columns: list[int] = []


class TimeWindow(msgspec.Struct, frozen=True):
    """A window of time in milliseconds since 1970, divided into columns."""

    since: int
    until: int
    columns: int

    def column(self, at: int) -> int:
        """Return the column of a moment, cut to the window."""
        width = max(1, self.until - self.since)
        return min(self.columns - 1, max(0, (at - self.since) * self.columns // width))


def timeline_of(places: Iterable[RunPlace], seq: int, window: TimeWindow) -> list[TimelineRow]:
    """Return a row for each box, in the order in which they began."""
    by_box: dict[str, list[RunPlace]] = {}
    for place in places:
        if place.standing(seq) is not None:
            by_box.setdefault(place.box, []).append(place)
    return [_row(box, found, seq, window) for box, found in by_box.items()]


def _row(box: str, places: list[RunPlace], seq: int, window: TimeWindow) -> TimelineRow:
    ends = [_end(place, seq) for place in places]
    closed = [end for end in ends if end is not None]
    until = max(closed) if len(closed) == len(ends) else None
    row = TimelineRow(box, len(places), places[0].changes[0].at, until)
    if len(places) > SPANS_PER_BOX_MAX:
        return msgspec.structs.replace(row, columns=_counts(places, ends, window))
    spans = [span for place in places for span in _spans(place, seq) if _is_in(span, window)]
    return msgspec.structs.replace(row, spans=spans)


def _end(place: RunPlace, seq: int) -> int | None:
    standing = place.standing(seq)
    return None if standing is None or standing.status == "open" else standing.at


def _spans(place: RunPlace, seq: int) -> Iterator[Span]:
    """Yield the spans of a place, one for each way in which it stood."""
    changes = [change for change in place.changes if change.seq <= seq]
    for change, after in zip(changes, [*changes[1:], None], strict=True):
        if change.status == "open":
            retries = after is not None and after.failure is not change.failure
            until = after.at if after is not None else None
            yield Span(place.number, place.mark(change), change.at, until, retries)
        elif after is None:
            yield Span(place.number, place.mark(change), change.at, change.at)


def _is_in(span: Span, window: TimeWindow) -> bool:
    return span.since <= window.until and (span.until is None or span.until >= window.since)


def _counts(places: list[RunPlace], ends: list[int | None], window: TimeWindow) -> list[int]:
    """Count how many places were open in each column."""
    changes = [0] * (window.columns + 1)
    for place, end in zip(places, ends, strict=True):
        begun = place.changes[0].at
        if begun > window.until or (end is not None and end < window.since):
            continue
        changes[window.column(begun)] += 1
        changes[window.column(end if end is not None else window.until) + 1] -= 1
    counts, now = [], 0
    for change in changes[:-1]:
        now += change
        counts.append(now)
    return counts
