"""Output streams: what steps and workflows write while they work, addressed by offset and kept apart from every log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Millis, RunUid


class NewChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of output to be kept. ``key`` identifies it in its stream for ever: the same key twice is one chunk."""

    uid: RunUid
    stream: str
    key: str
    body: bytes
    at: Millis
    by: str = ""
    """The place in the run that wrote it."""
    attempt: int = 0
    """Which hand-out of that place; 0: the workflow itself. A greater number begins anew what a smaller one wrote."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an output stream. Offsets of a stream begin at 1 and leave out none."""

    offset: int
    at: Millis
    by: str
    attempt: int
    body: bytes


class Streams(Protocol):
    """What steps and workflows write while they work, by run and name of the stream. It is no part of any log."""

    async def write(self, chunks: Sequence[NewChunk]) -> None:
        """Append all of them or none, in this order; durable when it returns.

        Chunks whose key is known, and those of runs that do not exist, are left out.
        """
        ...

    async def read(self, uid: RunUid, stream: str, *, after: int, limit: int) -> Sequence[Chunk]:
        """Chunks with offsets above ``after``, in order."""
        ...

    async def lengths(self, uid: RunUid) -> Mapping[str, int]:
        """The streams of a run, by name, and the last offset of each."""
        ...
