"""What happened to the tasks on streams, for metrics and people."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

Happened = Literal["published", "answered", "old", "bad", "lost", "overdue", "again", "withdrawn"]
"""``old``: answers to tasks that nobody waits for. ``overdue``: attempts that took longer than their timeout.
``again``: tasks whose entries were missing.
"""

NAMED = 3


class StreamCounts(msgspec.Struct):
    """The counts of this process since it started, and whether it can use the streams now."""

    happened: Counter[str] = msgspec.field(default_factory=Counter)
    trouble: str = ""
    """Why the streams cannot be used now; empty if they can."""
    others: set[str] = msgspec.field(default_factory=set)
    """The keys with names of streams that hold something else. They stop only what is on them."""

    @property
    def problem(self) -> str:
        """Return what is wrong with the streams now, for people; empty if nothing is."""
        if self.trouble or not self.others:
            return self.trouble
        named, more = sorted(self.others)[:NAMED], len(self.others) - NAMED
        rest = f" and {more} more" if more > 0 else ""
        return f"In Redis, {', '.join(named)}{rest} should be streams and hold something else. Delete these keys."

    def add(self, what: Happened, count: int = 1) -> None:
        """Count something."""
        self.happened[what] += count
