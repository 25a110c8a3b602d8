"""Tags of workflows in memory."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ports.tags import Tag, TagKey, TagMove
from weft.stores.memory.content import MemoryContent


class MemoryTags:
    """The tags of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def get(self, key: TagKey) -> Tag | None:
        return self._content.tags.get(key)

    async def find(self, tenant: str, workflow: str | None = None) -> Sequence[Tag]:
        tags = sorted(self._content.tags.items())
        return [tag for key, tag in tags if key.tenant == tenant and workflow in {None, key.workflow}]

    async def moves(self, key: TagKey, *, upto: int | None = None, limit: int = 100) -> Sequence[TagMove]:
        known = self._content.tag_moves.get(key, [])
        return known[slice(None, upto)][::-1][:limit]

    async def write(self, tag: Tag, move: TagMove | None = None) -> bool:
        known = self._content.tags.get(tag.key)
        if (known.revision if known is not None else 0) != tag.revision - 1:
            return False
        self._content.tags[tag.key] = tag
        if move is not None:
            moves = self._content.tag_moves.setdefault(tag.key, [])
            moves[move.number - 1 :] = [move]
        return True
