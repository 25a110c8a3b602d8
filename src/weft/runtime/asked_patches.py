"""Patches that wait until they are allowed, or for a review: what has become of them, and how to withdraw one."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.durations import time_of
from weft.core.ids import RunId
from weft.errors import NotFound
from weft.runtime.service import RunService


class PatchRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A patch that was not applied at once, and what has become of it."""

    run: str
    asked: int
    """Its number."""
    status: Literal["waiting", "in_review", "approved", "applied", "dropped"]
    since: datetime
    by: str = ""
    reason: str = ""
    until: datetime | None = None
    """When it is dropped if it is not allowed before."""
    at: str = ""
    """The node at which all tokens must be."""
    review: list[str] = []
    """Who must agree."""
    approved_by: list[str] = []
    digest: str = ""
    """The digest of the plan that people were asked about, or that was applied."""
    patch: Any = None
    rev: int = 0
    """The revision, if it was applied."""
    ended: datetime | None = None
    code: str = ""
    """Why it was dropped: a code that has a page."""
    message: str = ""


class PatchRequests:
    """The patches of runs that wait, as one caller may see and withdraw them."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def all(self, run_id: str) -> list[PatchRequest]:
        """Return the patches of a run that were not applied at once, oldest first. Raises NotFound."""
        row = await self._service.row(RunId(run_id))
        found: dict[int, PatchRequest] = {}
        async for stored in self._service.reader.events(row):
            event, at = e.decode(stored.body), time_of(stored.at)
            if isinstance(event, e.PatchAsked):
                found[stored.seq] = _waiting_request(row.id, stored.seq, at, event)
            elif isinstance(event, e.RunForked):
                found.clear()
            elif isinstance(event, e.PatchReviewAsked):
                found[event.asked] = msgspec.structs.replace(
                    found[event.asked], status="in_review", digest=event.digest, approved_by=[]
                )
            elif isinstance(event, e.AskAnswered) and event.ask in found and event.approved:
                found[event.ask] = msgspec.structs.replace(found[event.ask], status="approved", approved_by=[event.by])
            elif isinstance(event, e.RunPatched | e.PatchDropped) and event.asked in found:
                found[event.asked] = _ended_request(found[event.asked], event, at)
        return list(found.values())

    async def find(self, run_id: str, asked: int) -> PatchRequest:
        """Return one of them by its number. Raises NotFound."""
        for one in await self.all(run_id):
            if one.asked == asked:
                return one
        raise NotFound(f"{run_id} has no patch {asked} that had to wait.")

    async def withdraw(
        self, run_id: str, asked: int = 0, *, by: str = "", reason: str = "", key: str | None = None
    ) -> PatchRequest:
        """Drop a patch that waits; without a number, the only one. Raises NotFound, Refused."""
        values.encode([by, reason], what="the reason has")
        open_ones = [one.asked for one in await self.all(run_id) if one.ended is None]
        number = asked or (open_ones[0] if len(open_ones) == 1 else 0)
        await self._service.tell(RunId(run_id), c.WithdrawPatch(asked=number, by=by, reason=reason), key=key)
        return await self.find(run_id, number)


def _waiting_request(run_id: str, number: int, at: datetime, event: e.PatchAsked) -> PatchRequest:
    plain = values.inline_json(bytes(event.patch))
    return PatchRequest(
        run=run_id,
        asked=number,
        status="waiting",
        since=at,
        by=event.by,
        reason=event.reason,
        until=time_of(event.due) if event.due else None,
        at=event.wait_at,
        review=event.review,
        patch=msgspec.json.decode(plain) if plain is not None else None,
    )


def _ended_request(request: PatchRequest, event: e.RunPatched | e.PatchDropped, at: datetime) -> PatchRequest:
    if isinstance(event, e.RunPatched):
        return msgspec.structs.replace(request, status="applied", rev=event.rev, digest=event.digest, ended=at)
    who = f"by {event.by}" if event.by else ""
    message = ": ".join(filter(None, (event.message or who, event.reason)))
    return msgspec.structs.replace(request, status="dropped", code=event.code, message=message, ended=at)
