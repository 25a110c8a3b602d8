"""Output streams of a run, read by offset."""

from __future__ import annotations

from weft.server import views
from weft.server.endpoints.runs import found
from weft.server.request import ApiCall


async def list_streams(call: ApiCall) -> views.StreamLengths:
    """Return the names and lengths of a run's streams."""
    row = await found(call)
    return views.StreamLengths(dict(await call.service.store.streams.lengths(row.uid)))


async def read_stream(call: ApiCall) -> views.Chunks:
    """Return a page of a stream. A stream that nothing was written to is empty."""
    asked = call.asked(views.ChunksQuery)
    row = await found(call)
    store = call.service.store
    chunks = await store.streams.read(row.uid, call.parameters["stream"], after=asked.after, limit=asked.limit)
    more = len(chunks) == asked.limit
    return views.Chunks([views.chunk_view(chunk) for chunk in chunks], chunks[-1].offset if more else None)
