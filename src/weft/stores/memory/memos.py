"""Memos in memory."""

from __future__ import annotations

import msgspec

from weft.core.ids import Millis
from weft.ports.memos import Memo
from weft.stores.memory.content import MemoryContent


class MemoryMemos:
    """The memos of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def get(self, key: str, *, now: Millis) -> Memo | None:
        found = self._content.memos.get(key)
        if found is not None and found.until is not None and found.until <= now:
            del self._content.memos[key]
            return None
        return found

    async def put(self, memo: Memo) -> None:
        self._content.memos[memo.key] = msgspec.structs.replace(memo, output=bytes(memo.output))
