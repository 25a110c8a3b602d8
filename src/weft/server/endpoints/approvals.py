"""Questions that wait for people: which are open, and deciding one."""

from __future__ import annotations

import contextlib

import msgspec

from weft.core import commands as c
from weft.core import values
from weft.core.ids import RunId
from weft.errors import Corrupt, NotFound, UnknownWorkflow
from weft.ports.store import OPEN_STATUSES, RunQuery, RunRow
from weft.runtime.door import Door
from weft.server import views
from weft.server.paging import pack, unpack
from weft.server.request import Call

RUNS_PER_PAGE = 200
"""Runs that are looked through for one page: it may be empty and go on."""


async def list_approvals(call: Call) -> views.Approvals:
    """A page of open questions, by run, newest runs first."""
    asked = call.asked(views.PageQuery)
    door = call.services.door
    status, after = unpack(asked.cursor, tuple[str, str | None]) if asked.cursor else (OPEN_STATUSES[0], None)
    statuses = list(OPEN_STATUSES)
    if status not in statuses:
        return views.Approvals([], None)
    page = await door.search(RunQuery(status=status, limit=min(RUNS_PER_PAGE, asked.limit), after=after))
    found = [approval for row in page.rows for approval in await _open_in(door, row)]
    if page.cursor is not None:
        return views.Approvals(found, pack(status, page.cursor))
    following = statuses.index(status) + 1
    return views.Approvals(found, pack(statuses[following], None) if following < len(statuses) else None)


async def _open_in(door: Door, row: RunRow) -> list[views.Approval]:
    if not row.seq or row.fault is not None:
        return []
    # A log that cannot be read hides its own questions, not those of others.
    with contextlib.suppress(Corrupt, NotFound, UnknownWorkflow):
        machine = await door.machine(row)
        return [
            views.Approval(
                id=f"{row.id}:{machine.location(number)}",
                run=row.id,
                workflow=row.workflow,
                place=machine.location(number),
                title=question.title,
                of=question.of,
                quorum=question.quorum,
                approvals=question.approvals,
                form=question.form,
                about=msgspec.Raw(await door.load(bytes(question.about))),
                since=views.known_moment(question.since),
                due_at=views.moment(question.due),
            )
            for number, question in machine.state.asks.items()
        ]
    return []


async def decide(call: Call) -> views.Accepted:
    """Answer a question. Raises NotFound, AlreadyDecided, BadValue."""
    decision = call.given(views.Decision)
    door = call.services.door
    row, place = await named(door, call.parameters["id"], "question")
    values.encode([place, decision.by, decision.reason], what="the answer has")
    form = values.seal(values.encode(decision.form, what="the form has"))
    command = c.DecideAsk(place, decision.approved, decision.by, decision.reason, msgspec.Raw(form))
    await door.tell(row.id, command, key=call.key)
    now = await door.row(row.id)
    return views.Accepted(now.id, now.status)  # type: ignore[arg-type]


async def named(door: Door, text: str, what: str) -> tuple[RunRow, str]:
    """The run and the place that ``RUN:PLACE`` means: both may have colons, so the longest id that exists is taken."""
    cut = text.rfind(":")
    while cut > 0:
        row = await door.store.directory.find(RunId(text[:cut]))
        if row is not None:
            return row, text[cut + 1 :]
        cut = text.rfind(":", 0, cut)
    raise NotFound(f"No {what} {text[:100]!r} is known here.")
