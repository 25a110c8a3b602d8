"""Show what was lost with Redis when hosts died, until somebody acknowledges it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.cli.messages import say
from weft.cli.operations import installation_operations
from weft.cli.output import iso_time, print_json
from weft.cli.store_access import open_service
from weft.core.plurals import pluralize
from weft.ports.wals import Loss
from weft.stores.hot.takeover import loss_sentence


def loss_lines(losses: Sequence[Loss]) -> list[str]:
    """Return the lines about losses in the status of a store; none without losses."""
    lines = [f"lost    {loss_sentence(loss)}." for loss in losses]
    return [*lines, "        When you know of it: weft status --acknowledge-losses"] if lines else []


def loss_document(loss: Loss) -> dict[str, Any]:
    """Return a loss as JSON shows it."""
    return {**msgspec.structs.asdict(loss), "at": iso_time(loss.at), "text": loss_sentence(loss)}


async def acknowledge(*, url: str | None, app: str | None, json: bool) -> None:
    """Show the losses so far no longer."""
    async with open_service(url, app) as service:
        count = await installation_operations(service).acknowledge_losses()
    if json:
        print_json({"acknowledged": count})
    else:
        say(f"{pluralize(count, 'loss')} acknowledged." if count else "Nothing was lost.")
