"""The ledger of budgets in a store. Appends change it (``Append.ledger``), in their own transaction.

The moves and what they mean are in ``weft.core.ledger``. A store applies the moves of an append that it accepts, with
``Ledger.apply``, and puts the answers into ``Append.answers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weft.core.ids import Millis
from weft.core.ledger import LedgerRow


class Budgets(Protocol):
    """Reads the ledger. It can be made again from the logs of all runs."""

    async def read(self, scopes: Sequence[str]) -> Sequence[LedgerRow]:
        """Return the rows of these scopes, by scope and unit. A scope without rows has spent nothing."""
        ...

    async def forget(self, *, ended_before: Millis) -> int:
        """Delete the rows of windows that ended before this time and have nothing reserved. Returns how many."""
        ...
