"""Whether anybody works on a run: its owner, a host that could take it up, and who has its open tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from weft.core.decider import Machine
from weft.ports.store import RunRow

if TYPE_CHECKING:
    from weft.runtime.door import Door

NOT_HOSTED = "no process hosts it now"
HELD_MAX = 10_000


class Hosting(msgspec.Struct, frozen=True):
    """Who works on a run."""

    is_owned: bool
    """A living host has it in memory."""
    is_offered: bool
    """A living host has its workflow, and takes the run up when there is something to do."""
    idle: Mapping[int, str] = {}
    """Open tasks that nobody performs, and why."""


async def hosting_of(door: Door, row: RunRow, machine: Machine | None) -> Hosting:
    """Look at the hosts and the queues of the store."""
    living = {host.host: host.about for host in await door.store.hosts.listed() if not host.gone}
    is_owned = row.owner in living
    is_offered = any(
        row.style not in ("code", "") or row.workflow in about.get("workflows", ()) for about in living.values()
    )
    tasks = machine.state.tasks if machine is not None else {}
    if not tasks:
        return Hosting(is_owned, is_offered)
    rows = {offer.task: offer.queue for offer in await door.store.tasks.rows(row.uid)}
    taken: set[int] = set()
    if rows:
        held = await door.store.tasks.held(list(living), limit=HELD_MAX)
        taken = {offer.task for _, offer in held if offer.uid == row.uid}
    idle = {number: f"waits in the queue {queue}" for number, queue in rows.items() if number not in taken}
    if not is_owned:
        idle.update({number: NOT_HOSTED for number in tasks if number not in rows})
    return Hosting(is_owned, is_offered, {number: why for number, why in idle.items() if number in tasks})
