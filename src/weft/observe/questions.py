"""Find the open questions of runs. An attribute of the row marks runs with open questions; only those are read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from weft.core.commands import DecideAsk
from weft.core.ids import EntryId
from weft.core.run import questions
from weft.core.run.questions import is_group
from weft.core.run.state import Question, State
from weft.errors import NotFound, Refused, RunUnreadable
from weft.observe.runs import read_run
from weft.observe.styles import views_of
from weft.ports.run_query import RunQuery
from weft.ports.store import IMPORTED, MOVED, Page, RunRow
from weft.runtime.run.append_extras import ASKING
from weft.runtime.service import RunService
from weft.runtime.unreadable import unreadable_error

RUNS_PER_PAGE = 200


class OpenQuestion(msgspec.Struct, frozen=True):
    """An open question, the run that asks it, and its location in the run."""

    row: RunRow
    number: EntryId
    place: str
    question: Question
    state: State

    @property
    def id(self) -> str:
        return f"{self.row.id}:{self.place}"

    @property
    def digest(self) -> str:
        """The digest of the question. An answer that names it is refused if the question has changed."""
        return questions.question_digest(self.question)

    @property
    def asked(self) -> list[str]:
        """The people and groups who may answer; empty if anybody may."""
        return questions.allowed_people(self.question)

    def is_at(self, place: str) -> bool:
        """Return whether the node or step with this name asks the question."""
        has_nodes = views_of(self.row.style).has_nodes
        return has_nodes and self.place.startswith((f"{place}/", f"{place}["))

    def is_for(self, who: str) -> bool:
        """Return whether this person or group may answer.

        The members of groups are not known here, so any person may answer a question to a group.
        """
        asked = self.asked
        return not asked or who in asked or (not is_group(who) and any(map(is_group, asked)))

    def why_not(self, who: str, groups: Sequence[str] | None) -> str:
        """Return why this person may not answer; empty if the person may.

        Without ``groups`` the caller is not identified, so any group is accepted, and no name means any name.
        """
        if not who and groups is None:
            return ""
        answer = DecideAsk(self.place, approved=True, by=who, groups=list(groups) if groups is not None else None)
        try:
            questions.check_answerer(self.state, self.question, answer)
        except Refused as refused:
            return refused.message
        return ""

    @property
    def notice(self) -> str:
        """The newest notification that is due."""
        return questions.notice_kind(self.question)


async def runs_that_ask(service: RunService, *, after: str | None = None, limit: int = RUNS_PER_PAGE) -> Page:
    """Return a page of runs that have open questions, newest first, with bulks that are reviewed."""
    page = await service.search(RunQuery(where={ASKING: True}, internal=True, after=after, limit=limit))
    return Page([row for row in page.rows if row.status != IMPORTED], page.cursor)


async def open_in(service: RunService, row: RunRow) -> list[OpenQuestion]:
    """Return the open questions of a run. Raises RunUnreadable."""
    if row.fault is not None:
        raise unreadable_error(row, row.fault)
    if not row.seq:
        return []
    try:
        machine = await read_run(service, row)
    except NotFound:
        return []
    return [
        OpenQuestion(row, EntryId(number), machine.location(number), question, machine.state)
        for number, question in machine.state.questions.items()
    ]


def questions_at(questions: Sequence[OpenQuestion], place: str) -> list[OpenQuestion]:
    """Return the question at a location or, if there is none, those of the node or step with that name."""
    exact = [item for item in questions if item.place == place]
    return exact or [item for item in questions if item.is_at(place)]


async def open_questions_of(service: RunService, row: RunRow) -> list[OpenQuestion]:
    """Return the open questions of a run. It has none here if it cannot be read, or was moved away."""
    if row.status == MOVED:
        return []
    try:
        return await open_in(service, row)
    except RunUnreadable:
        return []


async def all_open(service: RunService) -> AsyncIterator[OpenQuestion]:
    """Yield all open questions, newest runs first."""
    after: str | None = None
    while True:
        page = await runs_that_ask(service, after=after)
        for row in page.rows:
            for question in await open_questions_of(service, row):
                yield question
        after = page.cursor
        if after is None:
            return
