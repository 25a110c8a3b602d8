"""Questions for people as the API shows them, open and decided."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw

from weft.observe.question_log import Outcome, QuestionLog
from weft.observe.questions import OpenQuestion
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.server import views
from weft.server.identity import AccessScope, Identity


class Permission(msgspec.Struct, frozen=True):
    """Whether the caller may do something; if not, why not."""

    allowed: bool
    why_not: str = ""


class ApprovalsQuery(views.PageQuery, frozen=True, kw_only=True):
    """Which open questions to return."""

    mine: bool = False
    """Whether to return only questions that the caller may answer."""
    workflow: views.Name | None = None
    run: views.Id | None = None
    q: Annotated[str, Meta(max_length=200)] = ""
    """A part of the title, of the workflow or of the run's id."""
    order: Literal["newest", "due"] = "newest"
    """How each page is sorted: by the newest run, or by what is due first."""


class ListedApproval(views.Approval, frozen=True, kw_only=True):
    """An open question in a list. ``may`` is about the caller."""

    may: Permission


class ApprovalPage(msgspec.Struct, frozen=True):
    """A page of open questions. It may be empty and still have a cursor."""

    approvals: list[ListedApproval]
    cursor: str | None


class VoteView(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one person. ``decided`` says whether it settled the question."""

    by: str
    approved: bool
    at: views.Moment
    reason: str
    decided: bool
    form: Raw


class ApprovalDetail(ListedApproval, frozen=True, kw_only=True):
    """A question with the answers so far. A decided one says how it ended."""

    outcome: Outcome
    votes: list[VoteView]
    ended_at: views.Moment | None


async def approval_view(service: RunService, item: OpenQuestion) -> views.Approval:
    """Return the view of a question, with the value that it is about."""
    question = item.question
    return views.Approval(
        id=item.id,
        run=item.row.id,
        workflow=item.row.workflow,
        place=item.place,
        title=question.title,
        of=item.asked,
        quorum=question.quorum,
        four_eyes=question.four_eyes,
        escalated=question.escalated,
        approvals=question.approvals,
        form=question.form,
        about=msgspec.Raw(await service.values.load(bytes(question.about))),
        digest=item.digest,
        since=views.required_time(question.since),
        due_at=views.api_time(question.due),
    )


def permission_to_answer(identity: Identity, item: OpenQuestion) -> Permission:
    """Return whether the caller may answer a question."""
    if not identity.may(AccessScope.DECIDE):
        return Permission(allowed=False, why_not="Your key may not answer questions: it lacks the scope decide.")
    who = identity.subject if identity.groups is not None else ""
    why_not = item.why_not(who, sorted(identity.groups) if identity.groups is not None else None)
    return Permission(not why_not, why_not)


async def listed_view(service: RunService, item: OpenQuestion, identity: Identity) -> ListedApproval:
    """Return the view of an open question for a caller."""
    view = await approval_view(service, item)
    return ListedApproval(**msgspec.structs.asdict(view), may=permission_to_answer(identity, item))


async def detail_view(
    service: RunService, item: OpenQuestion | None, row: RunRow, place: str, log: QuestionLog
) -> ApprovalDetail:
    """Return the view of a question that is open, or that was decided, with its answers."""
    opened = log.opened
    if item is not None:
        base = await approval_view(service, item)
    else:
        base = views.Approval(
            id=f"{row.id}:{place}",
            run=row.id,
            workflow=row.workflow,
            place=place,
            title=opened.title,
            of=opened.of,
            quorum=opened.quorum,
            four_eyes=opened.four_eyes,
            escalated=bool(log.escalated_to),
            approvals=[vote.by for vote in log.votes if vote.approved],
            form=opened.form,
            about=msgspec.Raw(await service.values.load(bytes(opened.about))),
            digest="",
            since=views.required_time(log.since),
            due_at=views.api_time(log.due),
        )
    votes = [
        VoteView(
            by=vote.by,
            approved=vote.approved,
            at=views.required_time(vote.at),
            reason=vote.reason,
            decided=vote.decided,
            form=msgspec.Raw(await service.values.load(vote.form)),
        )
        for vote in log.votes
    ]
    return ApprovalDetail(
        **msgspec.structs.asdict(base),
        may=Permission(allowed=False, why_not=why_closed(log)),
        outcome=log.outcome,
        votes=votes,
        ended_at=views.api_time(log.ended),
    )


def why_closed(log: QuestionLog) -> str:
    """Return why nobody can answer any more; empty if the question is open."""
    last = log.votes[-1] if log.votes else None
    match log.outcome:
        case "open":
            return ""
        case "timed_out":
            return "Nobody answered in time."
        case "withdrawn":
            return "The run no longer asks this."
        case _:
            who = last.by if last is not None and last.by else "Somebody"
            return f"{who} has {log.outcome} it."
