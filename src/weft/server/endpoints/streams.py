"""Read the output streams of a run by offset."""

from __future__ import annotations

from weft.server import views
from weft.server.endpoints.runs import requested_run
from weft.server.request import ApiCall


async def list_streams(call: ApiCall) -> views.StreamLengths:
    """Return the names and lengths of a run's streams."""
    row = await requested_run(call)
    return views.StreamLengths(dict(await call.service.store.streams.lengths(row.uid)))


async def read_stream(call: ApiCall) -> views.Chunks:
    """Return a page of a stream. A stream that nothing was written to is empty."""
    query = call.query_as(views.ChunksQuery)
    row = await requested_run(call)
    store = call.service.store
    chunks = await store.streams.read(row.uid, call.parameters["stream"], after=query.after, limit=query.limit)
    more = len(chunks) == query.limit
    return views.Chunks([views.chunk_view(chunk) for chunk in chunks], chunks[-1].offset if more else None)
