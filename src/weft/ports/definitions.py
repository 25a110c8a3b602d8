"""The stored versions of workflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from weft.core.ids import Millis

Origin = Literal["run", "patch", "hosted"]
"""How a version came into the store: by a patch of a run, by a patch of the workflow, or because a process hosted it.

Only hosted versions are found by the name of the workflow alone.
"""


VERSION_MARK = "weft.version."
"""The prefix of attributes with which a run names the versions in its log, besides the one in its row."""


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A stored version of a workflow. It never changes; identical content is the same version."""

    name: str
    version: str
    style: str
    body: bytes
    created_at: Millis
    origin: Origin = "hosted"


class Definitions(Protocol):
    """The stored versions of workflows."""

    async def put(self, definition: Definition) -> bool:
        """Store a definition. Returns False if the same definition was already stored.

        Raises Conflict if another body is stored under this name and version.
        """
        ...

    async def get(self, name: str, version: str) -> Definition | None:
        """Return one version of a workflow."""
        ...

    async def versions(self, name: str | None = None) -> Sequence[Definition]:
        """Return all versions, sorted by name, oldest first."""
        ...

    async def names(self, style: str) -> Sequence[tuple[str, str]]:
        """Return (name, version) of all definitions of a style. Cheap enough to poll."""
        ...

    async def promote(self, name: str, version: str, origin: Origin, *, at: Millis) -> None:
        """Note that a stored version was put again at this time.

        Changes its origin to one that is further to the right in ``Origin``, else leaves it.
        """
        ...

    async def unused(self, style: str, *, before: Millis, limit: int) -> Sequence[tuple[str, str]]:
        """Return (name, version) of those that were last put before this time, and that no run and no tag names.

        A run names the version of its row and those of its attributes with ``VERSION_MARK``; a tag those of its moves.
        """
        ...

    async def remove(self, name: str, version: str, *, before: Millis) -> bool:
        """Delete a version if ``unused`` would still return it. Returns whether it did."""
        ...
