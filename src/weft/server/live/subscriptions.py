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
from weft.server import views
from weft.server.live.feed import Filter
from weft.server.live.frames import Frame, chunk_frame, end_frame, gap_frame, ready_frame, run_frame

if TYPE_CHECKING:
    from weft.server.services import Services

BATCH_BYTES = 64 * 1024
EVENTS_PER_BATCH = 200
BEAT_SECONDS = 15.0

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
            page = await store.log.events(row.uid, after=seq, limit=EVENTS_PER_BATCH)
            if page:
                seq = page[-1].seq
                yield [run_frame(stored) for stored in page]
                continue
            now = await store.directory.row(row.uid)
            if now is None or (now.ended_at is not None and now.seq <= seq):
                yield [end_frame(now.status if now is not None else "deleted")]
                return
            if not await _heard(news):
                yield []


async def of_stream(services: Services, row: RunRow, stream: str, after: int) -> Batches:
    """The output of a run from there on, until the run is over."""
    store = services.door.store
    offset = after
    with services.feed.following(row.uid) as news:
        yield []
        while not services.closing.is_set():
            news.clear()
            now = await store.directory.row(row.uid)
            page = await store.streams.read(row.uid, stream, after=offset, limit=EVENTS_PER_BATCH)
            if page:
                offset = page[-1].offset
                yield [chunk_frame(chunk_view(chunk)) for chunk in page]
            elif now is None or now.ended_at is not None:
                yield [end_frame(now.status if now is not None else "deleted")]
                return
            elif not await _heard(news):
                yield []


def chunk_view(chunk: Chunk) -> views.Chunk:
    """A chunk for the API."""
    return views.Chunk(chunk.offset, views.known_moment(chunk.at), chunk.by, chunk.attempt, Raw(chunk.body))


async def _heard(news: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BEAT_SECONDS):
            await news.wait()
            return True
    return False
