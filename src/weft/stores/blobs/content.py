"""What a place for content must do. It knows names and bytes, and nothing of who needs them."""

from __future__ import annotations

from typing import Protocol


class BlobContent(Protocol):
    """Bytes under their SHA-256."""

    async def write(self, digest: str, data: bytes) -> None:
        """Returned means durable. Raises Unavailable, Full."""
        ...

    async def read(self, digest: str) -> bytes | None:
        """The bytes as they are, right or wrong; None: there are none."""
        ...

    async def has(self, digest: str) -> bool:
        """Whether there is something under this name."""
        ...

    async def delete(self, digest: str) -> None:
        """Also of what is not there. Returned means gone for good."""
        ...
