"""An open question as the API shows it."""

from __future__ import annotations

import msgspec

from weft.observe.questions import OpenQuestion
from weft.runtime.service import RunService
from weft.server import views


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
        since=views.required_moment(question.since),
        due_at=views.moment(question.due),
    )
