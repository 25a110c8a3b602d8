"""Output streams in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.core.ids import RunUid
from weft.ports.streams import Chunk, NewChunk
from weft.stores.memory.content import MemoryContent, StoredStream


class MemoryStreams:
    """The output streams of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def write(self, chunks: Sequence[NewChunk]) -> None:
        for new in chunks:
            if new.uid not in self._content.runs:
                continue
            stream = self._content.streams.setdefault((new.uid, new.stream), StoredStream())
            if new.key not in stream.keys:
                stream.keys.add(new.key)
                offset = len(stream.chunks) + 1
                stream.chunks.append(
                    Chunk(offset=offset, at=new.at, by=new.by, attempt=new.attempt, body=bytes(new.body))
                )

    async def read(self, uid: RunUid, stream: str, *, after: int, limit: int) -> Sequence[Chunk]:
        found = self._content.streams.get((uid, stream)) if uid in self._content.runs else None
        return [] if found is None else found.chunks[max(0, after) : max(0, after) + limit]

    async def lengths(self, uid: RunUid) -> Mapping[str, int]:
        if uid not in self._content.runs:
            return {}
        return {name: len(one.chunks) for (run, name), one in sorted(self._content.streams.items()) if run == uid}
