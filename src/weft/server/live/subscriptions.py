"""What a client that listens gets, batch by batch, whatever carries it: of a filter, of a run, or of an output stream.

Nothing is kept per client but where it stands. An empty batch says that the connection still lives.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from msgspec import Raw

from weft.core.ids import Seq
from weft.ports.store import RunRow
from weft.ports.streams import Chunk
from weft.runtime.unreadable import readable
from weft.server import views
from weft.server.live.feed import Filter
from weft.server.live.frames import Frame, chunk_frame, end_frame, gap_frame, problem_frame, ready_frame, run_frame
from weft.server.problems import problem_of

if TYPE_CHECKING:
    from weft.runtime.engine import Engine
    from weft.server.services import Services

BATCH_BYTES = 64 * 1024
EVENTS_PER_BATCH = 200
BEAT_SECONDS = 15.0
SETTLE_SECONDS = 1.5
"""How long another host may take to write the last output of a run. Longer than the pause between two looks."""

Batches = AsyncGenerator[Sequence[Frame], None]


async def of_filter(services: Services, filter: Filter, after: str | None, caller: str) -> Batches:
    """All that is committed here and fits, from now on or from where the client stood before."""
    with services.feed.subscribed(filter, caller) as channel:
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
                await channel.wait(BEAT_SECONDS)
                if channel.last == position:
                    yield []


async def of_run(services: Services, row: RunRow, after: int) -> Batches:
    """The log of a run from there on, until it is over."""
    store = services.door.store
    seq = Seq(after)
    with services.feed.following(row.uid) as news:
        yield []
        while not services.closing.is_set():
            news.clear()
            page, problem = await readable(services.door, row, after=seq, limit=EVENTS_PER_BATCH)
            if page:
                seq = page[-1].seq
                yield [run_frame(stored) for stored in page]
                continue
            if problem is not None:
                yield [problem_frame(problem_of(problem))]
                return
            now = await store.directory.row(row.uid)
            if now is None or (now.ended_at is not None and now.seq <= seq):
                yield [end_frame(now.status if now is not None else "deleted")]
                return
            if not await _heard(news):
                yield []


async def of_stream(services: Services, row: RunRow, stream: str, after: int) -> Batches:
    """The output of a run from there on, until the run is over."""
    store, engine = services.door.store, services.engine()
    offset, is_here, settled = after, False, False
    with services.feed.following(row.uid) as news:
        yield []
        while not services.closing.is_set():
            news.clear()
            is_here = is_here or row.uid in engine.runs.actors
            now = await store.directory.row(row.uid)
            page = await store.streams.read(row.uid, stream, after=offset, limit=EVENTS_PER_BATCH)
            if page:
                offset = page[-1].offset
                yield [chunk_frame(chunk_view(chunk)) for chunk in page]
            elif now is None or (now.ended_at is not None and settled):
                yield [end_frame(now.status if now is not None else "deleted")]
                return
            elif now.ended_at is not None:
                # What code emits as its last act is written after the event that ends the run.
                settled = True
                await _settle(engine, now, news, is_here=is_here)
            elif not await _heard(news):
                yield []


async def _settle(engine: Engine, row: RunRow, news: asyncio.Event, *, is_here: bool) -> None:
    """Wait until the output of a run that is over has been written, as far as it is known to be under way."""
    assert row.ended_at is not None
    recent = engine.clock.now_ms() - row.ended_at < SETTLE_SECONDS * 1000
    actor = engine.runs.actors.get(row.uid)
    if (actor is not None and actor.committed_seq < row.seq) or (recent and not is_here):
        await _heard(news, SETTLE_SECONDS)
    await engine.streams.flush()


def chunk_view(chunk: Chunk) -> views.Chunk:
    """A chunk for the API."""
    return views.Chunk(chunk.offset, views.known_moment(chunk.at), chunk.by, chunk.attempt, Raw(chunk.body))


async def _heard(news: asyncio.Event, seconds: float = BEAT_SECONDS) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()
            return True
    return False
