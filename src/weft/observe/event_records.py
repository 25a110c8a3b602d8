"""Read single records of a log, neighbours together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.observe.event_parts import EventPart, Unfolding, read_parts
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.runtime.unreadable import readable_events

RECORDS_PER_READ = 500
GAP_MAX = 50
"""Records that are not wanted and read all the same, because that is cheaper than reading twice."""


async def read_records(
    service: RunService, row: RunRow, numbers: Sequence[int], unfolding: Unfolding
) -> list[EventPart]:
    """Return the events of the records with these numbers, which rise."""
    wanted = set(numbers)
    parts: list[EventPart] = []
    for first, last in _stretches(numbers):
        stored, _ = await readable_events(service.store.log, row, after=first - 1, limit=last - first + 1)
        parts += await read_parts(service, row, [one for one in stored if one.seq in wanted], unfolding)
    return parts


def _stretches(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last number of each stretch that is read at once."""
    first = last = 0
    for number in numbers:
        if first and (number - last > GAP_MAX or number - first >= RECORDS_PER_READ):
            yield first, last
            first = 0
        first, last = first or number, number
    if first:
        yield first, last
