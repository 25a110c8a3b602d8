"""What the engine knows of a hot path: a store that acknowledges some appends before its durable store has them.

The *tail* of a run is what was acknowledged and is not drained into the durable store yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from weft.core.ids import HostId, RunUid, Seq


class HotRuns(Protocol):
    """The runs of this process whose appends may be acknowledged early."""

    on_drained: Callable[[RunUid, Seq | None], None]
    """Called when the durable store has a run up to this number; with None if it has refused the tail."""
    on_lost: Callable[[RunUid, Exception | None], None]
    """Called when the durable store has refused the tail of a run.

    The run is another host's, or the store cannot hold what it did last; then there is an error.
    """

    def is_hot(self, append: Any) -> bool:
        """Return whether an append would be acknowledged early if it were committed now."""
        ...

    async def hop(self, batch: Sequence[Any], host: HostId) -> Sequence[Any]:
        """Commit appends that are all hot now. Returns their outcomes, as ``RunLog.commit`` does."""
        ...

    def has_tail(self, uid: RunUid) -> bool:
        """Return whether a run has a tail."""
        ...

    async def flush(self, uid: RunUid | None = None) -> None:
        """Drain what a run, or every run, has in its tail now. Raises the error of the durable store."""
        ...
