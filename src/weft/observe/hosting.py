"""Whether anybody works on a run: its owner, a host that could take it up, and who has its open tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from weft.core.decider import Machine
from weft.core.ids import HostId
from weft.ports.store import RunRow

if TYPE_CHECKING:
    from weft.runtime.door import Door

NOT_HOSTED = "no process hosts it now"
HELD_MAX = 10_000


Abouts = Mapping[HostId, Mapping[str, Any]]
"""The living hosts, with what each says of itself."""


class Hosting(msgspec.Struct, frozen=True):
    """Who works on a run."""

    is_owned: bool
    """A living host has it in memory."""
    is_offered: bool
    """A living host has its workflow, and takes the run up when there is something to do."""
    idle: Mapping[int, str] = {}
    """Open tasks that nobody performs, and why."""
    missing: str = ""
    """The version that it waits for and none of the living hosts has, in words."""

    @property
    def is_hosted(self) -> bool:
        return self.is_owned or self.is_offered

    @property
    def why_not(self) -> str:
        """Why it does not go on, in words; empty: it does."""
        if self.is_hosted:
            return ""
        return f"it waits for {self.missing}" if self.missing else NOT_HOSTED


async def living_hosts(door: Door) -> Abouts:
    """Who is there."""
    return {host.host: host.about for host in await door.store.hosts.listed() if not host.gone}


def missing_version(row: RunRow, living: Abouts) -> str:
    """The version of a code run that no living host offers, in words; empty: one has it, or there are no hosts."""
    if not row.version or row.style not in ("code", "") or any(_offers(about, row) for about in living.values()):
        return ""
    return _missing(row) if living else ""


def _missing(row: RunRow) -> str:
    return f"version {row.version} of {row.workflow}, which no host offers"


def host_advice(row: RunRow, hosting: Hosting) -> str:
    """What helps a run that no host has and none would take up."""
    if not hosting.missing:
        return f"No process hosts {row.workflow} now. Run its program, or: weft serve app.py"
    if row.style == "graph":
        return "Run the program that registers this version, or: weft serve app.py"
    return (
        f'Keep the function of this version until its runs have ended: @app.workflow(version="{row.version}"), '
        "beside the newer one. Or run the older program."
    )


def _offers(about: Mapping[str, Any], row: RunRow) -> bool:
    versions = about.get("versions")
    if versions is None or not row.version:
        return row.workflow in about.get("workflows", ())
    return row.version in versions.get(row.workflow, ())


async def _is_offered(door: Door, row: RunRow, living: Abouts) -> bool:
    if any(_offers(about, row) for about in living.values()):
        return True
    if not living or row.style in ("code", ""):
        return False
    # Hosts learn the graphs of the store; a goal run brings its plan.
    return row.style != "graph" or await door.store.definitions.get(row.workflow, row.version) is not None


async def hosting_of(door: Door, row: RunRow, machine: Machine | None) -> Hosting:
    """Look at the hosts and the queues of the store."""
    living = await living_hosts(door)
    is_owned = row.owner in living
    is_offered = await _is_offered(door, row, living)
    missing = "" if is_owned or is_offered or not (living and row.version) else _missing(row)
    tasks = machine.state.tasks if machine is not None else {}
    if not tasks:
        return Hosting(is_owned, is_offered, missing=missing)
    rows = {offer.task: offer.queue for offer in await door.store.tasks.rows(row.uid)}
    taken: set[int] = set()
    if rows:
        held = await door.store.tasks.held(list(living), limit=HELD_MAX)
        taken = {offer.task for _, offer in held if offer.uid == row.uid}
    idle = {number: f"waits in the queue {queue}" for number, queue in rows.items() if number not in taken}
    if not is_owned:
        idle.update({number: NOT_HOSTED for number in tasks if number not in rows})
    return Hosting(is_owned, is_offered, {number: why for number, why in idle.items() if number in tasks}, missing)
