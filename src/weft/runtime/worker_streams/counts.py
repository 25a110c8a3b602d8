"""What happened to the tasks on streams, for metrics and people."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

Happened = Literal["published", "answered", "old", "bad", "lost", "again", "withdrawn"]
"""``old``: answers to tasks that nobody waits for. ``again``: tasks whose entries were missing."""


class StreamCounts(msgspec.Struct):
    """The counts of this process since it started, and whether it can use the streams now."""

    happened: Counter[str] = msgspec.field(default_factory=Counter)
    trouble: str = ""
    """Why the streams cannot be used now; empty if they can."""

    def add(self, what: Happened, count: int = 1) -> None:
        """Count something."""
        self.happened[what] += count
