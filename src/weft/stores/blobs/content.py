"""The protocol of a place for the content of blobs. It knows digests and bytes, and nothing about runs."""

from __future__ import annotations

from typing import Protocol


class BlobContent(Protocol):
    """A place that stores bytes under their SHA-256."""

    async def write(self, digest: str, data: bytes) -> None:
        """Write content durably. Raises Unavailable, Full."""
        ...

    async def read(self, digest: str) -> bytes | None:
        """Return the content, without checking it; None if nothing has this digest."""
        ...

    async def has(self, digest: str) -> bool:
        """Return whether there is content with this digest."""
        ...

    async def delete(self, digest: str) -> None:
        """Delete content durably. Does nothing if there is no such content."""
        ...
