"""Dead letters: work that failed for good and that no edge of its graph took."""

from __future__ import annotations

from msgspec import Raw

from weft.core import commands as c
from weft.core.graph.tokens import GraphState
from weft.ports.store import RunQuery
from weft.runtime.actor import DEAD_LETTERS
from weft.server import views
from weft.server.endpoints.places import named
from weft.server.request import Call


async def list_letters(call: Call) -> views.Letters:
    """A page of dead letters, newest runs first; all letters of a run are on one page."""
    asked = call.asked(views.LettersQuery)
    door = call.door
    page = await door.search(
        RunQuery(where={DEAD_LETTERS: True}, id_prefix=asked.run, limit=asked.limit, after=asked.cursor)
    )
    found = []
    for row in page.rows:
        state = await door.state(row)
        if not isinstance(state, GraphState):
            continue
        for token, letter in state.letters.items():
            found.append(
                views.Letter(
                    id=f"{row.id}:{token}",
                    run=row.id,
                    workflow=row.workflow,
                    node=letter.node,
                    since=views.known_moment(letter.at),
                    input=Raw(await door.values.load(bytes(letter.input))),
                    failure=letter.failure,
                )
            )
    return views.Letters(found, page.cursor)


async def requeue(call: Call) -> views.Accepted:
    """Let it work again."""
    row, token = await named(call.door, call.parameters["id"], "dead letter")
    return await _changed(call, row.id, c.RequeueLetter(token))


async def discard(call: Call) -> views.Accepted:
    """Put it away."""
    row, token = await named(call.door, call.parameters["id"], "dead letter")
    return await _changed(call, row.id, c.DiscardLetter(token))


async def _changed(call: Call, run_id: str, command: c.RequeueLetter | c.DiscardLetter) -> views.Accepted:
    door = call.door
    row = await door.row(run_id)  # type: ignore[arg-type]
    await door.reopen(row.id, command, key=call.key)
    now = await door.row(row.id)
    return views.Accepted(now.id, now.status)  # type: ignore[arg-type]
