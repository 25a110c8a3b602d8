"""Tags of workflows: names for versions, each with a linear history of moves and a cursor in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from weft.core.ids import Millis


class TagKey(NamedTuple):
    """The identity of a tag. The operator of an installation is the tenant with the empty name."""

    tenant: str
    workflow: str
    tag: str


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """A tag as it stands. ``by``, ``at`` and ``reason`` are those of its last change, also of an undo or redo."""

    key: TagKey
    version: str
    """Empty if the first move was undone: then the tag names nothing."""
    cursor: int
    """The number of the move that led to ``version``; 0 before the first."""
    moves: int
    """How many moves there are. Those after the cursor can be redone."""
    revision: int
    """How often the tag was changed."""
    by: str = ""
    at: Millis
    reason: str = ""


class TagMove(msgspec.Struct, frozen=True, kw_only=True):
    """One move of a tag, from one version to another. The first comes from no version."""

    number: int
    before: str
    after: str
    by: str = ""
    at: Millis
    reason: str = ""


class Tags(Protocol):
    """The tags of all tenants."""

    async def get(self, key: TagKey) -> Tag | None:
        """Return a tag."""
        ...

    async def find(self, tenant: str, workflow: str | None = None) -> Sequence[Tag]:
        """Return the tags of a tenant, or those of one workflow, sorted by workflow and name."""
        ...

    async def moves(self, key: TagKey, *, upto: int | None = None, limit: int = 100) -> Sequence[TagMove]:
        """Return moves of a tag, newest first, beginning with number ``upto``."""
        ...

    async def write(self, tag: Tag, move: TagMove | None = None) -> bool:
        """Change a tag, if its revision in the store is one less. Revision 1 makes the tag.

        A ``move`` replaces the move with its number and all after it. Returns False, and changes nothing, if the tag
        was changed meanwhile.
        """
        ...
