"""Dead letters: work that failed for good and that no error route handled."""

from __future__ import annotations

from msgspec import Raw

from weft.core import commands as c
from weft.observe.dead_letters import FoundLetter, dead_letters_in, runs_with_dead_letters
from weft.runtime.service import RunService
from weft.server import views
from weft.server.endpoints.runs import parse_place
from weft.server.request import ApiCall


async def list_dead_letters(call: ApiCall) -> views.Letters:
    """Return a page of dead letters, newest runs first. All letters of a run are on one page."""
    query = call.query_as(views.LettersQuery)
    service = call.service
    page = await runs_with_dead_letters(service, prefix=query.run, after=query.cursor, limit=query.limit)
    items = [item for row in page.rows for item in await dead_letters_in(service, row)]
    return views.Letters([await _letter_view(service, item) for item in items], page.cursor)


async def _letter_view(service: RunService, item: FoundLetter) -> views.Letter:
    letter = item.letter
    return views.Letter(
        id=item.id,
        run=item.row.id,
        workflow=item.row.workflow,
        node=letter.node,
        since=views.required_time(letter.at),
        input=Raw(await service.values.load(bytes(letter.input))),
        failure=letter.failure,
    )


async def requeue(call: ApiCall) -> views.Accepted:
    """Requeue a dead letter, so that its token continues."""
    row, token = await parse_place(call.service, call.parameters["id"], "dead letter")
    return await _tell(call, row.id, c.RequeueLetter(token))


async def discard(call: ApiCall) -> views.Accepted:
    """Discard a dead letter."""
    row, token = await parse_place(call.service, call.parameters["id"], "dead letter")
    return await _tell(call, row.id, c.DiscardLetter(token))


async def _tell(call: ApiCall, run_id: str, command: c.RequeueLetter | c.DiscardLetter) -> views.Accepted:
    service = call.service
    row = await service.row(run_id)  # type: ignore[arg-type]
    await service.tell(row.id, command, key=call.key)
    now = await service.row(row.id)
    return views.Accepted(now.id, now.status)  # type: ignore[arg-type]
