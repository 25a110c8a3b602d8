"""List questions for people, show one, and answer one.

An identified caller answers in its own name only. On a server without keys, the name that the caller gives is accepted.
"""

from __future__ import annotations

import msgspec

from weft.core import commands as c
from weft.core import values
from weft.errors import NotAllowed, NotFound
from weft.observe.question_log import question_log
from weft.observe.questions import RUNS_PER_PAGE, OpenQuestion, open_questions_of, runs_that_ask
from weft.server import views
from weft.server.approvals.approval import (
    ApprovalDetail,
    ApprovalPage,
    ApprovalsQuery,
    detail_view,
    listed_view,
    permission_to_answer,
)
from weft.server.endpoints.runs import parse_place
from weft.server.identity import Identity
from weft.server.request import ApiCall


async def list_approvals(call: ApiCall) -> ApprovalPage:
    """Return a page of open questions."""
    query = call.query_as(ApprovalsQuery)
    service = call.service
    page = await runs_that_ask(service, after=query.cursor, limit=min(RUNS_PER_PAGE, query.limit))
    rows = [row for row in page.rows if query.run in {None, row.id} and query.workflow in {None, row.workflow}]
    items = [item for row in rows for item in await open_questions_of(service, row) if _has(item, query.q)]
    found = [await listed_view(service, item, call.identity) for item in items]
    if query.mine:
        found = [one for one in found if one.may.allowed]
    if query.order == "due":
        found.sort(key=lambda one: (one.due_at is None, one.due_at or one.since, one.since))
    return ApprovalPage(found, page.cursor)


def _has(item: OpenQuestion, text: str) -> bool:
    wanted = text.casefold()
    return not wanted or any(wanted in one.casefold() for one in (item.question.title, item.row.workflow, item.row.id))


async def show_approval(call: ApiCall) -> ApprovalDetail:
    """Return one question, open or decided. Raises NotFound, RunUnreadable."""
    service = call.service
    row, place = await parse_place(service, call.parameters["id"], "question")
    viewed = await call.services.viewed.get(service, row)
    found = await question_log(service, row, viewed.log, place)
    if found is None:
        raise NotFound(
            f"{row.id} has asked no question at {place[:200]!r}.", hint="The inbox lists the open questions."
        )
    item = next((one for one in await open_questions_of(service, row) if one.place == place), None)
    view = await detail_view(service, item, row, place, found)
    return msgspec.structs.replace(view, may=permission_to_answer(call.identity, item)) if item is not None else view


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
