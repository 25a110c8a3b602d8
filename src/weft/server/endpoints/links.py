"""Make links, show what a link would decide, and decide it."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw

from weft.core import commands as c
from weft.core import values
from weft.core.ids import RunUid
from weft.core.run.questions import is_group
from weft.errors import AlreadyDecided, BadValue, NotAllowed, NotFound, Refused, RunFinished, RunUnreadable
from weft.observe.questions import OpenQuestion, open_in
from weft.server import views
from weft.server.access.keys import check_key_name
from weft.server.approvals.approval import approval_view
from weft.server.approvals.links import Claim, Links, make_link_pair
from weft.server.endpoints.forms import parse_form
from weft.server.endpoints.link_page import ShownQuestion, message_page, question_page
from weft.server.endpoints.runs import parse_place
from weft.server.request import ApiCall, ApiReply
from weft.server.settings import public_url

Field = Annotated[str, Meta(max_length=10_000)]


class NewLinks(views.Form, frozen=True, kw_only=True):
    """The person in whose name the links answer a question."""

    by: views.Name
    groups: Annotated[list[views.Name], Meta(max_length=50)] = msgspec.field(default_factory=list)


class LinkAnswer(views.Form, frozen=True, kw_only=True):
    """The input of the page behind a link: an answer, a reason, and the fields of the form as ``form.NAME``."""

    decision: Literal["", "approve", "reject"] = ""
    """Empty for the answer that the link was made for."""
    reason: Field = ""
    form: Annotated[dict[str, Field], Meta(max_length=100)] | Field = ""


async def make_links(call: ApiCall) -> views.LinkPair:
    """Make links for one person. Send them where only that person reads them."""
    wanted = call.body_as(NewLinks)
    check_key_name(wanted.by)
    for group in wanted.groups:
        if not is_group(group):
            raise BadValue(
                f"{group[:60]!r} is not a group.", hint="Write role:NAME or team:NAME.", code="value.bad_name"
            )
    row, place = await parse_place(call.service, call.parameters["id"], "question")
    item = next((one for one in await open_in(call.service, row) if one.place == place), None)
    if item is None:
        raise NotFound(f"{row.id} has no open question {place[:100]!r}.")
    links = await Links.for_store(call.services.runs.store.access, public_url() or call.root)
    return make_link_pair(links, item, wanted.by, wanted.groups, now_ms=call.services.runs.clock.now_ms())


# --- the page ----------------------------------------------------------------------------------------------------


async def show_link(call: ApiCall) -> ApiReply:
    """Show what a link would decide. Showing it decides nothing."""
    return await _respond(call, None)


async def follow_link(call: ApiCall) -> ApiReply:
    """Answer the question, with the button that was pressed."""
    return await _respond(call, call.body_as(LinkAnswer))


async def _respond(call: ApiCall, answer: LinkAnswer | None) -> ApiReply:
    service = call.services.runs
    message = partial(message_page, is_answer=answer is not None)
    try:
        links = await Links.for_store(service.store.access)
        claim = links.open(call.parameters["token"], now_s=service.clock.now_ms() // 1000)
        item = await _item(call, claim)
    except NotFound as error:
        return message("Link not valid", str(error), 404)
    except RunUnreadable as error:
        return message("Not possible now", error.message, 409)
    except AlreadyDecided as error:
        return message("Already decided", str(error), 409)
    except Refused as error:
        return message("Too late", str(error), 410)
    approval = await approval_view(service, item)
    if answer is None:
        return question_page(ShownQuestion(approval=approval, claim=claim, now=_now(call)), {})
    return await _decide(call, claim, item, answer)


async def _item(call: ApiCall, claim: Claim) -> OpenQuestion:
    service = call.services.runs
    row = await service.store.directory.row(RunUid(claim.uid))
    if row is None:
        raise NotFound("The run of this question no longer exists.")
    found = next((item for item in await open_in(service, row) if item.number == claim.ask), None)
    if found is None or found.digest != claim.digest:
        raise AlreadyDecided(f"This question of {row.id} is no longer open: it was decided or withdrawn.")
    return found


async def _decide(call: ApiCall, claim: Claim, item: OpenQuestion, answer: LinkAnswer) -> ApiReply:
    service = call.services.runs
    filled = {"reason": answer.reason, **_fields(answer)}
    schema = item.question.form
    approved = claim.approved if not answer.decision else answer.decision == "approve"
    try:
        value = parse_form(schema, filled) if approved and schema is not None else None
        values.encode([answer.reason], what="the reason has")
        form = Raw(values.seal(values.encode(value, what="the form has")))
        command = c.DecideAsk(claim.ask, approved, claim.by, answer.reason, form, claim.groups, claim.digest)
        await service.tell(item.row.id, command, key=call.key)
    except BadValue as error:
        approval = await approval_view(service, item)
        shown = ShownQuestion(approval=approval, claim=claim, now=_now(call))
        return question_page(shown, filled, wrong=error.message)
    except (AlreadyDecided, RunFinished) as error:
        return message_page("Already decided", error.message, 409)
    except NotAllowed as error:
        return message_page("Not allowed", error.message, 403)
    verdict = "approved" if approved else "rejected"
    return message_page("Recorded", f"“{item.question.title}” was {verdict} by {claim.by}.")


def _now(call: ApiCall) -> datetime:
    return views.required_time(call.services.runs.clock.now_ms())


def _fields(answer: LinkAnswer) -> dict[str, str]:
    if isinstance(answer.form, str):
        return {"form": answer.form} if answer.form else {}
    return {f"form.{name}": text for name, text in answer.form.items()}
