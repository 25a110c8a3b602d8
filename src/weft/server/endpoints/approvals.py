"""List open questions for people, and answer one.

An identified caller answers in its own name only. On a server without keys, the name that the caller gives is accepted.
"""

from __future__ import annotations

import msgspec

from weft.core import commands as c
from weft.core import values
from weft.errors import NotAllowed
from weft.observe.questions import RUNS_PER_PAGE, OpenQuestion, listed_in, runs_that_ask
from weft.server import views
from weft.server.approvals.approval import approval_view
from weft.server.endpoints.runs import parse_place
from weft.server.identity import Identity
from weft.server.request import ApiCall


async def list_approvals(call: ApiCall) -> views.Approvals:
    """Return a page of open questions, newest runs first."""
    query = call.query_as(views.ApprovalsQuery)
    service = call.service
    page = await runs_that_ask(service, after=query.cursor, limit=min(RUNS_PER_PAGE, query.limit))
    items = [item for row in page.rows for item in await listed_in(service, row)]
    if query.mine:
        items = [item for item in items if may_answer(call.identity, item)]
    return views.Approvals([await approval_view(service, item) for item in items], page.cursor)


def may_answer(identity: Identity, item: OpenQuestion) -> bool:
    """Return whether the question is for the caller. An unidentified caller may answer all questions."""
    asked = item.asked
    return not asked or identity.groups is None or identity.subject in asked or bool(identity.groups & set(asked))


async def decide(call: ApiCall) -> views.Accepted:
    """Answer a question. Raises NotFound, NotAllowed, AlreadyDecided, BadValue."""
    decision = call.body_as(views.Decision)
    service = call.service
    row, place = await parse_place(service, call.parameters["id"], "question")
    by, groups = _answering_as(call.identity, decision.by)
    values.encode([place, by, decision.reason, decision.digest], what="the answer has")
    form = msgspec.Raw(values.seal(values.encode(decision.form, what="the form has")))
    command = c.DecideAsk(place, decision.approved, by, decision.reason, form, groups, decision.digest)
    await service.tell(row.id, command, key=call.key)
    now = await service.row(row.id)
    return views.Accepted(now.id, now.status)  # type: ignore[arg-type]


def _answering_as(identity: Identity, claimed: str) -> tuple[str, list[str] | None]:
    if identity.groups is None:
        return claimed, None
    if claimed and claimed != identity.subject:
        raise NotAllowed(f"{identity.subject} cannot answer for {claimed[:100]}.", hint="Leave out `by`.")
    return identity.subject, sorted(identity.groups)
