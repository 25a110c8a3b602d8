"""Replies to commands: refusals, and futures that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from weft.core.ids import RunId
from weft.errors import IdTaken, KeyReused, NotFound, RunFinished, WeftError
from weft.ports.store import Sent


def taken(run_id: RunId) -> IdTaken:
    """Make the error for a start whose id belongs to another run."""
    return IdTaken(f"{run_id} exists already.", hint="Choose another id, or omit it for a new run.", run_id=run_id)


def refusal(sent: Sent, key: str | None) -> WeftError | None:
    """Return the error for the sender of a piece of mail; None if it was accepted."""
    match sent:
        case Sent.OVER:
            return RunFinished("The run ended before this reached it; nothing was changed.")
        case Sent.UNKNOWN_RUN:
            return NotFound("The run was deleted before this reached it.")
        case Sent.KEY_REUSED:
            return KeyReused(f'The key "{key}" was used for another command.')
    return None


def resolve(future: asyncio.Future[None]) -> Callable[[WeftError | None], None]:
    """Return a reply callback that resolves a future."""

    def reply(error: WeftError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    return reply
