"""Read the conversation of an agent's run."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from weft.observe.conversation import TURNS_PER_PAGE, AskedTurns, ConversationView, read_conversation
from weft.server import views
from weft.server.endpoints.run_views import AtQuery, viewed_run
from weft.server.request import ApiCall


class ConversationQuery(AtQuery, frozen=True, kw_only=True):
    """Which turns: the newest, or those before a turn, as they stood after an event."""

    before: Annotated[int, Meta(ge=0)] | None = None
    limit: views.Limit = TURNS_PER_PAGE


async def conversation(call: ApiCall) -> ConversationView:
    """Return the newest turns of an agent's run, or those before a turn."""
    asked = call.query_as(ConversationQuery)
    row, viewed, seq = await viewed_run(call)
    turns = AskedTurns(seq=seq, before=asked.before, limit=asked.limit)
    return await read_conversation(call.service, row, viewed.log, turns)
