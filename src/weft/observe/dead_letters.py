"""Find dead letters: work that failed for good and whose failure no edge of its graph handled.

An attribute of the row marks the runs that have dead letters, and only those runs are read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from weft.core.graph.tokens import DeadLetter
from weft.errors import RunUnreadable
from weft.observe.runs import read_run
from weft.observe.styles import views_of
from weft.ports.run_query import RunQuery
from weft.ports.store import IMPORTED, Page, RunRow
from weft.runtime.run.append_extras import DEAD_LETTERS
from weft.runtime.service import RunService

RUNS_PER_PAGE = 200


class FoundLetter(msgspec.Struct, frozen=True):
    """A dead letter and the run that it belongs to."""

    row: RunRow
    token: str
    letter: DeadLetter

    @property
    def id(self) -> str:
        return f"{self.row.id}:{self.token}"


async def runs_with_dead_letters(
    service: RunService, *, prefix: str | None = None, after: str | None = None, limit: int = RUNS_PER_PAGE
) -> Page:
    """Return a page of runs that have dead letters, newest first, with deliveries to hooks that failed.

    With ``prefix``, only ids that begin with it.
    """
    query = RunQuery(where={DEAD_LETTERS: True}, internal=True, id_prefix=prefix, after=after, limit=limit)
    page = await service.search(query)
    return Page([row for row in page.rows if row.status != IMPORTED], page.cursor)


async def dead_letters_in(service: RunService, row: RunRow) -> list[FoundLetter]:
    """Return the dead letters of a run, or an empty list if the run cannot be read."""
    try:
        machine = await read_run(service, row)
    except RunUnreadable:
        return []
    letters = views_of(machine.style.name).dead_letters(machine)
    return [FoundLetter(row, token, letter) for token, letter in letters.items()]


async def all_dead_letters(service: RunService, prefix: str | None = None) -> AsyncIterator[FoundLetter]:
    """Yield all dead letters, newest runs first. With ``prefix``, only of runs whose ids begin with it."""
    after: str | None = None
    while True:
        page = await runs_with_dead_letters(service, prefix=prefix, after=after)
        for row in page.rows:
            for letter in await dead_letters_in(service, row):
                yield letter
        after = page.cursor
        if after is None:
            return
