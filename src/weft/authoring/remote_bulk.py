"""Bulks on a server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from weft.authoring.remote import Remote
from weft.runtime.bulk_plan import BulkOrder, BulkPlan
from weft.server.endpoints.bulk import BulkView


class RemoteBulk:
    """Plans and starts bulks through the API of a server."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def plan(self, order: BulkOrder) -> BulkPlan:
        wanted = order.filter
        since = datetime.fromtimestamp(wanted.since / 1000, UTC) if wanted.since is not None else None
        named = {name: getattr(wanted, name) for name in wanted.__struct_fields__} | {"since": since}
        found = {name: value for name, value in named.items() if value}
        body: dict[str, Any] = {"verb": order.verb, "options": order.options, "dry_run": True}
        view = await self._remote.post(
            "bulk", {**body, **({"ids": order.ids} if order.ids else {"filter": found})}, BulkView
        )
        return view.plan()

    async def start(
        self, plan: BulkPlan, *, reason: str = "", by: str = "", review: Sequence[str] = (), key: str | None = None
    ) -> str:
        """Start a bulk. The server knows who the caller is; ``by`` counts only where it does not."""
        body = {
            "verb": plan.verb,
            "ids": plan.ids,
            "uids": plan.uids,
            "options": plan.options,
            "expects": plan.expects,
            "reason": reason,
            "by": by,
            "review": review,
        }
        view = await self._remote.post("bulk", body, BulkView, key=key)
        assert view.run is not None, "a bulk that is not a dry run has a run"
        return view.run
