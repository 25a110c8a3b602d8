"""The ledger of budgets in memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core.ids import Millis
from weft.core.ledger import LedgerRow
from weft.stores.memory.content import MemoryContent


class MemoryBudgets:
    """The ledger of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def read(self, scopes: Sequence[str]) -> Sequence[LedgerRow]:
        wanted = set(scopes)
        found = [key for key in self._content.ledger.rows if key[0] in wanted]
        return [msgspec.structs.replace(self._content.ledger.rows[key]) for key in sorted(found)]

    async def forget(self, *, ended_before: Millis) -> int:
        rows = self._content.ledger.rows
        ended = [key for key, row in rows.items() if 0 < row.ends_at < ended_before and not row.reserved]
        for key in ended:
            del rows[key]
        return len(ended)
