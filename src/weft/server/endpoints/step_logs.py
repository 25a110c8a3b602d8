"""Read what the steps of a run printed and logged, a page at a time or as they print it."""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.observe.step_logs import LAST_LINES_SECONDS, LogLine, flush_step_logs, level_number, log_line, read_log_lines
from weft.ports.step_logs import LogQuery
from weft.ports.store import RunRow
from weft.server import views
from weft.server.endpoints.live import NOTHING_MORE, is_reconnect, position_of, wait_for_change
from weft.server.endpoints.runs import requested_run
from weft.server.live.frames import Batches, LiveFrame, end_frame
from weft.server.request import ApiCall, ApiReply
from weft.server.services import Services

LINES_PER_BATCH = 200
_encode = msgspec.json.Encoder().encode


class LogsQuery(views.Form, frozen=True, kw_only=True):
    """Which lines: with numbers above ``after``, of at least this level, of this place."""

    after: views.Offset = 0
    limit: views.Limit = 200
    level: Literal["debug", "info", "warning", "error", "critical"] = "debug"
    place: views.Text | None = None


class LogLines(msgspec.Struct, frozen=True, kw_only=True):
    """A page of lines, oldest first."""

    lines: list[LogLine]
    after: int | None
    """Where the next page begins; none if this is the last one."""
    last: int
    """The number of the last line of the run. A gap between two numbers says how many lines were left out there."""
    left_out: int
    """How many lines are not stored, because a step or the run printed too much."""
    is_over: bool
    """Whether the run is over, so that no more lines come."""


async def list_logs(call: ApiCall) -> LogLines:
    """Return a page of what the steps of a run printed."""
    asked = call.query_as(LogsQuery)
    row = await requested_run(call)
    query = LogQuery(
        after=asked.after,
        limit=asked.limit,
        level=level_number(asked.level) if asked.level != "debug" else 0,
        place=asked.place,
    )
    lines = await read_log_lines(call.service, row, query)
    totals = await call.service.store.step_logs.totals(row.uid)
    return LogLines(
        lines=lines,
        after=lines[-1].number if len(lines) == asked.limit else None,
        last=totals.last,
        left_out=totals.last - totals.lines,
        is_over=row.ended_at is not None,
    )


async def follow_logs(call: ApiCall) -> Batches | ApiReply:
    """Send what the steps of a run print, from its beginning or the client's position, until the run is over."""
    call.services.hosting()
    row = await requested_run(call)
    after = position_of(call)
    if row.ended_at is not None and is_reconnect(call):
        await flush_step_logs(call.service)
        if after >= (await call.service.store.step_logs.totals(row.uid)).last:
            return NOTHING_MORE
    return _log_batches(call.services, row, after)


async def _log_batches(services: Services, row: RunRow, after: int) -> Batches:
    runs = services.hosting()
    waited = False
    with services.feed.follow(row.uid) as changed:
        yield []
        while not services.closing.is_set():
            changed.clear()
            now = await runs.store.directory.row(row.uid)
            if now is None or now.ended_at is not None:
                await flush_step_logs(runs)
            page = await runs.store.step_logs.read(row.uid, LogQuery(after=after, limit=LINES_PER_BATCH))
            if page:
                after = page[-1].number
                yield [_line_frame(log_line(line)) for line in page]
            elif now is None or (now.ended_at is not None and waited):
                yield [end_frame(now.status if now is not None else "deleted")]
                return
            elif now.ended_at is not None:
                # A step on another host may have printed something that is not stored yet.
                waited = True
                if runs.clock.now_ms() - now.ended_at < LAST_LINES_SECONDS * 1000:
                    await wait_for_change(changed, LAST_LINES_SECONDS)
            elif not await wait_for_change(changed):
                yield []


def _line_frame(line: LogLine) -> LiveFrame:
    return LiveFrame(str(line.number), "line", _encode(line))
