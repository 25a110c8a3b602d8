"""Open questions of runs, as people look at them. Found by an attribute of the runs, so that looking costs what is
open, not what exists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from weft.core.ids import EntryId
from weft.core.run import questions
from weft.core.run.state import Question
from weft.errors import NotFound, RunUnreadable, UnknownWorkflow
from weft.ports.store import Page, RunQuery, RunRow
from weft.runtime.actor import ASKING
from weft.runtime.door import Door
from weft.runtime.unreadable import unreadable

RUNS_PER_PAGE = 200


class OpenQuestion(msgspec.Struct, frozen=True):
    """A question and where it stands."""

    row: RunRow
    number: EntryId
    place: str
    question: Question

    @property
    def id(self) -> str:
        return f"{self.row.id}:{self.place}"

    @property
    def digest(self) -> str:
        """Of what is decided; an answer may name it."""
        return questions.digest_of(self.question)

    @property
    def asked(self) -> list[str]:
        """Who may answer; empty: anybody."""
        return questions.asked(self.question)

    @property
    def notice(self) -> str:
        """What people should have been told."""
        return questions.notice(self.question)


async def runs_that_ask(door: Door, *, after: str | None = None, limit: int = RUNS_PER_PAGE) -> Page:
    """A page of runs with open questions, newest first."""
    return await door.search(RunQuery(where={ASKING: True}, after=after, limit=limit))


async def open_in(door: Door, row: RunRow) -> list[OpenQuestion]:
    """The questions of a run. Raises RunUnreadable."""
    if row.fault is not None:
        raise unreadable(row, row.fault)
    if not row.seq:
        return []
    try:
        machine = await door.machine(row)
    except (NotFound, UnknownWorkflow):
        return []
    return [
        OpenQuestion(row, EntryId(number), machine.location(number), question)
        for number, question in machine.state.asks.items()
    ]


async def listed_in(door: Door, row: RunRow) -> list[OpenQuestion]:
    """The questions of one run among many: if it cannot be read, that hides its own questions and no others."""
    try:
        return await open_in(door, row)
    except RunUnreadable:
        return []


async def all_open(door: Door) -> AsyncIterator[OpenQuestion]:
    """Every open question, by run, newest runs first."""
    after: str | None = None
    while True:
        page = await runs_that_ask(door, after=after)
        for row in page.rows:
            for found in await listed_in(door, row):
                yield found
        after = page.cursor
        if after is None:
            return
