"""What lies across the rows of a timeline: idle gaps, and lines where somebody or something acted on the run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from weft.observe.place_log import PlaceLog
from weft.observe.places import RunPlace

GAP_MIN_MS = 10_000
GAP_SHARE = 10
"""A gap is longer than this part of the span, as in "a tenth"."""
LINES_MAX = 300

LineKind = Literal["message", "answer", "pause", "resume", "retry", "patch", "takeover"]
_LINES: dict[str, LineKind] = {
    "message_received": "message",
    "ask_answered": "answer",
    "run_paused": "pause",
    "run_held": "pause",
    "run_resumed": "resume",
    "run_retried": "retry",
    "run_patched": "patch",
    "run_edited": "patch",
    "result_set": "patch",
    "task_lost": "takeover",
    "run_adopted": "takeover",
}


class IdleGap(msgspec.Struct, frozen=True):
    """A time in which nothing happened and nothing was performed, in milliseconds since 1970."""

    since: int
    until: int


class TimelineLine(msgspec.Struct, frozen=True):
    """An event that acted on the run as a whole, or that somebody outside of it caused."""

    seq: int
    at: int
    kind: LineKind


def gaps_of(log: PlaceLog, seq: int, now: int) -> list[IdleGap]:
    """Return the gaps before an event, and the one after it if it lasts until ``now``."""
    times = [*log.times[: max(0, seq - log.first + 1)], now]
    if len(times) < 2:
        return []
    shortest = max(GAP_MIN_MS, (now - times[0]) // GAP_SHARE + 1)
    places = log.until(seq)
    return [
        IdleGap(since, until)
        for number, (since, until) in enumerate(pairwise(times), log.first)
        if until - since >= shortest and not _is_working(places, number)
    ]


def _is_working(places: Sequence[RunPlace], seq: int) -> bool:
    return any((standing := place.standing(seq)) is not None and standing.mark == "working" for place in places)


def lines_of(log: PlaceLog, seq: int) -> list[TimelineLine]:
    """Return the newest lines up to an event, oldest first."""
    found: set[tuple[int, LineKind]] = set()
    for kind, line in _LINES.items():
        numbers = log.numbers_of(kind)
        end = bisect_right(numbers, seq)
        found.update((number, line) for number in numbers[max(0, end - LINES_MAX) : end])
    return [TimelineLine(number, log.time_of(number), line) for number, line in sorted(found)[-LINES_MAX:]]
