"""Output streams, which steps and workflows write while they run. They are stored apart from the logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Millis, RunUid


class NewChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk of output to store. ``key`` identifies it in its stream; a chunk with a known key is not stored again."""

    uid: RunUid
    stream: str
    key: str
    body: bytes
    at: Millis
    by: str = ""
    """The place in the run that wrote it."""
    attempt: int = 0
    """The delivery of the step; 0 for the workflow itself. A later delivery replaces the output of an earlier one."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk of an output stream. The offsets in a stream are 1, 2, 3 and so on."""

    offset: int
    at: Millis
    by: str
    attempt: int
    body: bytes


class Streams(Protocol):
    """The output streams of runs, by run and name."""

    async def write(self, chunks: Sequence[NewChunk]) -> None:
        """Append all chunks or none, in this order. They are durable when this returns.

        Chunks with a known key, and chunks of runs that do not exist, are left out.
        """
        ...

    async def read(self, uid: RunUid, stream: str, *, after: int, limit: int) -> Sequence[Chunk]:
        """Return the chunks with offsets above ``after``, in order."""
        ...

    async def lengths(self, uid: RunUid) -> Mapping[str, int]:
        """Return the last offset of each stream of a run, by name."""
        ...
