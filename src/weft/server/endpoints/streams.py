"""Output streams of a run, by offset."""

from __future__ import annotations

from weft.server import views
from weft.server.endpoints.runs import found
from weft.server.live.resuming import NOTHING_MORE, is_reconnect, resumed
from weft.server.live.subscriptions import Batches, chunk_view, of_stream
from weft.server.request import Call, Reply


async def list_streams(call: Call) -> views.Streams:
    """Which streams a run has, and how long they are."""
    row = await found(call)
    return views.Streams(dict(await call.door.store.streams.lengths(row.uid)))


async def read_stream(call: Call) -> views.Chunks:
    """A page of a stream; one that nothing was written to is empty."""
    asked = call.asked(views.ChunksQuery)
    row = await found(call)
    store = call.door.store
    chunks = await store.streams.read(row.uid, call.parameters["stream"], after=asked.after, limit=asked.limit)
    more = len(chunks) == asked.limit
    return views.Chunks([chunk_view(chunk) for chunk in chunks], chunks[-1].offset if more else None)


async def follow_stream(call: Call) -> Batches | Reply:
    """A stream as it grows, until the run is over."""
    call.services.engine()
    row = await found(call)
    stream, after = call.parameters["stream"], resumed(call)
    if row.ended_at is not None and is_reconnect(call):
        lengths = await call.door.store.streams.lengths(row.uid)
        if after >= lengths.get(stream, 0):
            return NOTHING_MORE
    return of_stream(call.services, row, stream, after)
