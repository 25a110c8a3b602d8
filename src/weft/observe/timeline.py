"""The timeline of a run: when each box worked, as spans, or as counts where there are too many of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Literal

import msgspec

from weft.observe.pictures import Mark
from weft.observe.places import PlaceChange, RunPlace
from weft.observe.timeline_marks import IdleGap

SPANS_PER_BOX_MAX = 8
"""How many places of a box are shown one by one. With more, the row shows how many were open at once."""
Wait = Literal["", "retry", "time", "person", "message", "run"]
_WAITS: dict[str, Wait] = {
    "ask": "person",
    "sleep": "time",
    "timer": "time",
    "wait": "time",
    "receive": "message",
    "child": "run",
}


StandingPlace = tuple[RunPlace, PlaceChange]
"""A place, and how it stands."""


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """The time in which a place stood in one way. ``until`` is None while it still does."""

    number: int
    mark: Mark
    since: int
    until: int | None = None
    retries: bool = False
    """Whether an attempt failed at the end of the span."""
    wait: Wait = ""
    """What a span with the mark ``waiting`` waits for."""


class TimelineRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A box of the timeline: its spans, or if there are many places, how many were open in each column.

    The row of an opened box is one of its places, with its ``number`` and its location.
    """

    box: str
    places: int
    since: int
    until: int | None = None
    number: int = 0
    place: str = ""
    mark: Mark = "idle"
    spans: list[Span] = []
    columns: list[int] = []


class TimeWindow(msgspec.Struct, frozen=True):
    """A window of time in milliseconds since 1970, divided into columns. Gaps have no columns."""

    since: int
    until: int
    columns: int
    now: int
    gaps: Sequence[IdleGap] = ()

    def column(self, at: int) -> int:
        """Return the column of a moment, cut to the window."""
        width = max(1, self._active(self.until))
        return min(self.columns - 1, max(0, self._active(at) * self.columns // width))

    def _active(self, at: int) -> int:
        """Return the time between the left edge and a moment, without gaps."""
        idle = sum(max(0, min(gap.until, at) - max(gap.since, self.since)) for gap in self.gaps)
        return at - self.since - idle


def timeline_rows(places: Iterable[RunPlace], seq: int, window: TimeWindow) -> list[TimelineRow]:
    """Return a row for each box, in the order in which they began."""
    by_box: dict[str, list[StandingPlace]] = {}
    for place in places:
        standing = place.standing(seq)
        if standing is None:
            continue
        found = by_box.get(place.box)
        if found is None:
            by_box[place.box] = [(place, standing)]
        else:
            found.append((place, standing))
    return [_row(box, found, seq, window) for box, found in by_box.items()]


def place_row(place: RunPlace, seq: int, window: TimeWindow) -> TimelineRow:
    """Return the row of one place."""
    standing = place.standing(seq)
    assert standing is not None
    row = _row(place.box, [(place, standing)], seq, window)
    return msgspec.structs.replace(row, number=place.number, place=place.operation.location, mark=standing.mark)


def _row(box: str, places: list[StandingPlace], seq: int, window: TimeWindow) -> TimelineRow:
    ends = [standing.at for _, standing in places if standing.status != "open"]
    until = max(ends) if len(ends) == len(places) else None
    row = TimelineRow(box, len(places), places[0][0].changes[0].at, until)
    if len(places) > SPANS_PER_BOX_MAX:
        return msgspec.structs.replace(
            row, columns=_most_open_at_once([place.changes[0].at for place, _ in places], ends, window)
        )
    spans = [span for place, _ in places for span in _spans(place, seq, window.now) if _is_in(span, window)]
    return msgspec.structs.replace(row, spans=spans)


def _spans(place: RunPlace, seq: int, now: int) -> Iterator[Span]:
    """Yield the spans of a place, one for each way in which it stood."""
    changes = [change for change in place.changes if change.seq <= seq]
    if changes[-1].status != "open":
        yield Span(place.number, changes[-1].mark, changes[-1].at, changes[-1].at)
    for change, after in pairwise([*changes, None]):
        assert change is not None
        if change.status == "open":
            yield from _open_spans(place, change, after, now)


def _open_spans(place: RunPlace, change: PlaceChange, after: PlaceChange | None, now: int) -> Iterator[Span]:
    """Yield the span between two changes: two spans if the place waits for a retry, which then begins."""
    fails = after is not None and after.failure is not None and after.failure is not change.failure
    until = after.at if after is not None else None
    since, mark = change.at, change.mark
    retries_at = change.due if change.failure is not None and change.due > since else 0
    if retries_at and retries_at < (until if until is not None else now):
        yield Span(place.number, "waiting", since, retries_at, wait="retry")
        since, mark = retries_at, "working"
        retries_at = 0
    wait: Wait = "retry" if retries_at else _WAITS.get(place.operation.kind, "time")
    yield Span(place.number, mark, since, until, fails, wait if mark == "waiting" else "")


def _is_in(span: Span, window: TimeWindow) -> bool:
    return span.since <= window.until and (span.until is None or span.until >= window.since)


def _most_open_at_once(starts: list[int], ends: list[int], window: TimeWindow) -> list[int]:
    """Return for each column how many places were open at once, at most."""
    # A change is one number, so that very many are sorted quickly. At the same moment, ends come before starts.
    changes = sorted([at << 1 for at in ends] + [at << 1 | 1 for at in starts])
    end = bisect_left(changes, (window.until + 1) << 1)
    index = bisect_left(changes, window.since << 1, 0, end)
    now = sum([change & 1 or -1 for change in changes[:index]])
    counts = []
    for column in range(window.columns):
        after = bisect_right(changes, column, index, end, key=lambda change: window.column(change >> 1))
        levels = list(accumulate([change & 1 or -1 for change in changes[index:after]], initial=now))
        counts.append(max(levels))
        index, now = after, levels[-1]
    return counts
