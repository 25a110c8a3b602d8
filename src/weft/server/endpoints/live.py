"""Live routes, which send the events of one run, or of all runs that match a filter, as they are committed.

Each route yields batches of frames, which ``live/transports.py`` sends as server-sent events or over a WebSocket. Only
the position of a client is kept. An empty batch keeps the connection alive.
"""

from __future__ import annotations

import asyncio
import contextlib

from weft.core.ids import Seq
from weft.errors import BadValue
from weft.observe.event_parts import Unfolding, read_parts
from weft.ports.store import RunRow
from weft.runtime.run.actor import Actor
from weft.runtime.service import RunService
from weft.runtime.tenancy import prefix_of
from weft.runtime.unreadable import readable_events
from weft.server import views
from weft.server.endpoints.run_live import place_batches
from weft.server.endpoints.runs import requested_run
from weft.server.live.feed import Filter
from weft.server.live.frames import (
    Batches,
    chunk_frame,
    end_frame,
    gap_frame,
    problem_frame,
    ready_frame,
    run_frame,
)
from weft.server.problems import problem_of
from weft.server.request import ApiCall, ApiReply
from weft.server.services import Services

BATCH_BYTES = 64 * 1024
EVENTS_PER_BATCH = 200
KEEP_ALIVE_SECONDS = 15.0
LAST_OUTPUT_SECONDS = 1.5
"""How long another host may take to write the last output of a run. Longer than the feed waits between two polls."""
DIGITS_MAX = 15
NOTHING_MORE = ApiReply(b"", 204)
"""Stops a browser from reconnecting, when the run is over and the client has seen everything."""


async def follow_run(call: ApiCall) -> Batches | ApiReply:
    """Send the log of a run from its beginning, or from the client's position, until it is over."""
    call.services.hosting()
    row = await requested_run(call)
    after = position_of(call)
    if row.ended_at is not None and is_reconnect(call) and after >= row.seq:
        return NOTHING_MORE
    asked = call.query_as(views.FollowRunQuery)
    if asked.as_ == "places":
        is_resumed = is_reconnect(call) or asked.after is not None
        return place_batches(call, row, after if is_resumed else None)
    return _run_batches(call.services, row, after)


async def follow_all(call: ApiCall) -> Batches:
    """Send the commits of this host from now on, or from the client's position."""
    call.services.hosting()
    query = call.query_as(views.LiveQuery)
    tenant = call.identity.tenant
    prefix = prefix_of(tenant) if tenant else ""
    filter_ = Filter(query.workflow, query.status, frozenset(query.kind), prefix)
    return _filter_batches(call.services, filter_, call.headers.get("last-event-id") or query.after, call.caller)


async def follow_stream(call: ApiCall) -> Batches | ApiReply:
    """Send an output stream as it grows, until the run is over."""
    call.services.hosting()
    row = await requested_run(call)
    stream, after = call.parameters["stream"], position_of(call)
    if row.ended_at is not None and is_reconnect(call):
        lengths = await call.service.store.streams.lengths(row.uid)
        if after >= lengths.get(stream, 0):
            return NOTHING_MORE
    return _stream_batches(call.services, row, stream, after)


# --- positions ---------------------------------------------------------------------------------------------------


def is_reconnect(call: ApiCall) -> bool:
    """Return whether the client listened before. Browsers send ``Last-Event-ID`` when they reconnect."""
    return bool(call.headers.get("last-event-id"))


def position_of(call: ApiCall) -> int:
    """Return the number of the last event or chunk that the client saw. Raises BadValue."""
    last = call.headers.get("last-event-id")
    if last:
        if not (last.isascii() and last.isdigit() and len(last) <= DIGITS_MAX):
            raise BadValue(f"Last-Event-ID {last[:40]!r} is not the number of an event.", code="value.wrong_type")
        return int(last)
    return call.query_as(views.FollowQuery).after or 0


# --- batches -----------------------------------------------------------------------------------------------------


async def _filter_batches(services: Services, filter: Filter, after: str | None, caller: str) -> Batches:
    with services.feed.subscribe(filter, caller) as channel:
        known = channel.last if after is None else channel.position(after)
        position = channel.last if known is None else known
        yield [gap_frame(-1, channel.cursor(position)) if known is None else ready_frame(channel.cursor(position))]
        while not services.closing.is_set():
            batch = channel.after(position, BATCH_BYTES)
            position = batch.position
            if batch.lost:
                yield [gap_frame(batch.lost), *batch.frames]
            elif batch.frames:
                yield batch.frames
            else:
                await channel.wait(KEEP_ALIVE_SECONDS)
                if channel.last == position:
                    yield []


async def _run_batches(services: Services, row: RunRow, after: int) -> Batches:
    store = services.runs.store
    seq = Seq(after)
    unfolding = Unfolding()
    with services.feed.follow(row.uid) as changed:
        yield []
        while not services.closing.is_set():
            changed.clear()
            page, problem = await readable_events(services.runs.store.log, row, after=seq, limit=EVENTS_PER_BATCH)
            if page:
                seq = page[-1].seq
                yield [run_frame(part) for part in await read_parts(services.runs, row, page, unfolding)]
                continue
            if problem is not None:
                yield [problem_frame(problem_of(problem))]
                return
            now = await store.directory.row(row.uid)
            if now is None or (now.ended_at is not None and now.seq <= seq):
                yield [end_frame(now.status if now is not None else "deleted")]
                return
            if not await wait_for_change(changed):
                yield []


async def _stream_batches(services: Services, row: RunRow, stream: str, after: int) -> Batches:
    runs = services.hosting()
    store = runs.store
    offset, is_here, waited_for_output = after, False, False
    with services.feed.follow(row.uid) as changed:
        yield []
        while not services.closing.is_set():
            changed.clear()
            is_here = is_here or _actor(runs, row) is not None
            now = await store.directory.row(row.uid)
            page = await store.streams.read(row.uid, stream, after=offset, limit=EVENTS_PER_BATCH)
            if page:
                offset = page[-1].offset
                yield [chunk_frame(views.chunk_view(chunk)) for chunk in page]
            elif now is None or (now.ended_at is not None and waited_for_output):
                yield [end_frame(now.status if now is not None else "deleted")]
                return
            elif now.ended_at is not None:
                # The last output of the code may be written after the event that ends the run.
                waited_for_output = True
                await _wait_for_output(runs, now, changed, is_here=is_here)
            elif not await wait_for_change(changed):
                yield []


async def _wait_for_output(runs: RunService, row: RunRow, changed: asyncio.Event, *, is_here: bool) -> None:
    """Wait for the last output of a finished run, if it may not be written yet."""
    assert row.ended_at is not None
    recent = runs.clock.now_ms() - row.ended_at < LAST_OUTPUT_SECONDS * 1000
    actor = _actor(runs, row)
    if (actor is not None and actor.committed_seq < row.seq) or (recent and not is_here):
        await wait_for_change(changed, LAST_OUTPUT_SECONDS)
    if runs.streams is not None:
        await runs.streams.flush()


def _actor(runs: RunService, row: RunRow) -> Actor | None:
    return runs.local.find(row.uid) if runs.local is not None else None


async def wait_for_change(changed: asyncio.Event, seconds: float = KEEP_ALIVE_SECONDS) -> bool:
    """Wait for an event. Returns False if the time runs out first."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await changed.wait()
            return True
    return False
