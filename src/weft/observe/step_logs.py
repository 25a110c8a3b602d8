"""Read what the steps of a run printed and logged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec

from weft.errors import BadValue
from weft.ports.step_logs import LogQuery, LogTotals, StoredLine
from weft.ports.store import RunRow
from weft.runtime.service import RunService

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_LEVELS_FALLING = sorted(LEVELS.items(), key=lambda item: -item[1])

POLL_SECONDS = 0.25
LAST_LINES_SECONDS = 1.0
"""How long after the end of a run its last lines may come. A host writes them after a fifth of a second."""


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a step printed or logged. A gap between two numbers says how many lines were left out there."""

    number: int
    """Counts the lines of the run from 1, including those that were left out."""
    at: datetime
    place: str
    """The place in the run that wrote it."""
    attempt: int
    level: str
    """debug, info, warning, error or critical. What is printed is info."""
    source: str
    """The name of the logger; stdout or stderr for what was printed."""
    text: str


def level_name(number: int) -> str:
    """Return the name of the level at or below a number of ``logging``."""
    return next((name for name, least in _LEVELS_FALLING if number >= least), "debug")


def level_number(name: str) -> int:
    """Return the number of a level. Raises BadValue."""
    if name not in LEVELS:
        raise BadValue(f"{name!r} is not one of {', '.join(LEVELS)}.", code="value.wrong_type")
    return LEVELS[name]


def log_line(stored: StoredLine) -> LogLine:
    """Return a stored line as people see it."""
    return LogLine(
        number=stored.number,
        at=datetime.fromtimestamp(stored.at / 1000, UTC),
        place=stored.place,
        attempt=stored.attempt,
        level=level_name(stored.level),
        source=stored.source,
        text=stored.text,
    )


async def read_log_lines(service: RunService, row: RunRow, query: LogQuery) -> list[LogLine]:
    """Return lines of a run, including what its steps in this process have just printed."""
    await flush_step_logs(service)
    return [log_line(line) for line in await service.store.step_logs.read(row.uid, query)]


async def log_totals(service: RunService, row: RunRow) -> LogTotals:
    """Return how many lines a run has."""
    return await service.store.step_logs.totals(row.uid)


async def flush_step_logs(service: RunService) -> None:
    """Store what steps in this process have just printed."""
    if service.work is not None and service.work.step_logs is not None:
        await service.work.step_logs.flush()


async def follow_lines(
    service: RunService, row: RunRow, query: LogQuery, *, follow: bool = False
) -> AsyncIterator[LogLine]:
    """Iterate over lines of a run. With ``follow``, also over those to come, until the run is over."""
    waited = 0.0
    while True:
        page = await read_log_lines(service, row, query)
        for line in page:
            yield line
        if page:
            query = msgspec.structs.replace(query, after=page[-1].number)
        if len(page) == query.limit:
            continue
        if not follow:
            return
        now = await service.store.directory.row(row.uid)
        if now is None or (now.ended_at is not None and (waited >= LAST_LINES_SECONDS or _is_long_over(service, now))):
            return
        waited = waited + POLL_SECONDS if now.ended_at is not None else 0.0
        await asyncio.sleep(POLL_SECONDS)


def _is_long_over(service: RunService, row: RunRow) -> bool:
    """Return whether a run ended so long ago that nothing more can come."""
    return row.ended_at is not None and service.clock.now_ms() - row.ended_at > LAST_LINES_SECONDS * 1000
