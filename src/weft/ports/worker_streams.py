"""What publishing tasks on streams needs of a Redis server, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from weft.errors import UsageError

ENTRY_BYTES_MAX = 32 * 1024 * 1024
"""Of a larger entry, only its token is read. Each of its words counts ``WORD_BYTES`` more."""
WORD_BYTES = 64


class StreamsInCluster(UsageError):
    """The Redis server is a cluster, whose nodes have a part of the streams each."""

    code = "stream.cluster"


class NewEntry(msgspec.Struct, frozen=True):
    """An entry to add to a stream."""

    stream: str
    fields: Mapping[str, str]
    keep: int | None = None
    """How many entries the stream keeps: the newest. None keeps all."""


class StreamEntry(msgspec.Struct, frozen=True):
    """An entry of a stream. Anybody may have written it, so its fields are bytes."""

    stream: str
    id: str
    fields: Mapping[bytes, bytes]
    size: int = 0
    """How many bytes it takes in memory, about."""


class PublishedEntry(NamedTuple):
    """What is known of an entry without reading the rest of it. Anybody may have written it."""

    token: str
    """Empty if it has none, and cut if it is long."""
    is_given: bool
    """Whether it was given to somebody who has not acknowledged it."""


class StreamServer(Protocol):
    """The streams of a Redis server. All are read in the group ``weft``, by workers and by hosts.

    Every method raises Unavailable if the server does not answer, or answers with an error, and StreamsInCluster if
    it is a node of a cluster that does not have all streams.
    """

    async def set_if_missing(self, key: str, value: str, *, expire_ms: int | None = None) -> str:
        """Set a key if it has no value. Returns its value. A key that already has this value expires later."""
        ...

    async def prepare(self, streams: Sequence[str]) -> Sequence[str]:
        """Make these streams and their groups, where they are missing. Returns the keys that hold something else."""
        ...

    async def add(self, entries: Sequence[NewEntry]) -> None:
        """Add entries, in this order. If this raises, any of them may have been added."""
        ...

    async def read(self, streams: Sequence[str], *, count: int, wait_ms: int) -> Sequence[StreamEntry]:
        """Return entries that nobody was given yet, and wait for some. They stay until they are removed.

        The streams take turns. Fewer are returned if they are large, so that a host can hold them.
        """
        ...

    async def claim_idle(
        self, stream: str, *, idle_ms: int, count: int, bytes_max: int = ENTRY_BYTES_MAX
    ) -> Sequence[StreamEntry]:
        """Take over entries that were given to somebody who has not touched them for this long.

        Of those with more than ``bytes_max``, only the token is read. Fewer are returned if they are large.
        """
        ...

    async def remove(self, stream: str, ids: Sequence[str]) -> None:
        """Acknowledge and delete entries. Those that are gone do not matter."""
        ...

    async def published(self, stream: str) -> Mapping[str, PublishedEntry]:
        """Return all entries of a stream by their ids, without what may be large."""
        ...

    async def members(self, key: str, new: Sequence[str] = ()) -> frozenset[str]:
        """Add to a set, and return its members."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
