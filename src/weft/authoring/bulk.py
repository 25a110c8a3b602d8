"""Do the same to many runs: first a dry run that counts, then one durable run that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from weft.authoring.handles import Handle
from weft.authoring.since import since_to_ms
from weft.runtime.bulk_plan import BulkFilter, BulkOrder, BulkPlan, BulkResult, RefusedRuns
from weft.steps.codec import Codec


class BulkAccess(Protocol):
    """What plans and starts bulks: the service of a store, or a server."""

    async def plan(self, order: BulkOrder) -> BulkPlan: ...

    async def start(
        self, plan: BulkPlan, *, reason: str = "", by: str = "", review: Sequence[str] = (), key: str | None = None
    ) -> str: ...


class Bulk:
    """The dry run of a verb over many runs, as ``app.bulk`` returns it. Nothing has been changed yet."""

    def __init__(
        self,
        open_access: Callable[[], BulkAccess],
        plan: BulkPlan,
        handle: Callable[[str, Codec[BulkResult]], Handle[BulkResult]],
    ) -> None:
        self._open_access = open_access
        self._plan = plan
        self._handle = handle

    def __repr__(self) -> str:
        refused = sum(group.count for group in self.refused)
        return f"<weft bulk {self.verb}: {self.matched} runs, {self.would_apply} would apply, {refused} refused>"

    @property
    def verb(self) -> str:
        """What would be done to each run."""
        return self._plan.verb

    @property
    def ids(self) -> Sequence[str]:
        """The runs that were found. The bulk goes through these and no others."""
        return self._plan.ids

    @property
    def matched(self) -> int:
        """How many runs were found."""
        return self._plan.matched

    @property
    def would_apply(self) -> int:
        """How many runs would be changed."""
        return self._plan.would_apply

    @property
    def unchanged(self) -> int:
        """How many runs are already as the verb would leave them."""
        return self._plan.unchanged

    @property
    def refused(self) -> Sequence[RefusedRuns]:
        """The runs that would refuse, counted by reason."""
        return self._plan.refused

    async def apply(
        self, *, reason: str = "", by: str = "", review: Sequence[str] = (), key: str | None = None
    ) -> Handle[BulkResult]:
        """Start the run that does it, and return its handle. Its result counts what was applied and what was refused.

        With ``review`` it first asks these people (``"team:ops"``), one of whom must agree; ``by`` may not answer.

        Pausing, resuming and cancelling that run is pausing, resuming and cancelling the bulk. The same key finds the
        same bulk.
        """
        run = await self._open_access().start(self._plan, reason=reason, by=by, review=review, key=key)
        return self._handle(run, Codec.of(BulkResult))


def bulk_order(
    verb: str,
    ids: Sequence[str],
    *,
    since: datetime | timedelta | str | None,
    options: dict[str, Any] | None,
    **filters: Any,
) -> BulkOrder:
    """Return the order of a bulk from the arguments of ``app.bulk`` and ``client.bulk``."""
    found = BulkFilter(since=since_to_ms(since), **{name: value for name, value in filters.items() if value})
    return BulkOrder(verb=verb, ids=ids, filter=found, options=options or {})
