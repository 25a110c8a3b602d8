"""Who works on a run: its owner, hosts that could take it up, and who performs its open tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core.decider import Machine
from weft.core.ids import HostId
from weft.observe.styles import views_of
from weft.ports.store import RunRow
from weft.runtime.service import RunService

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
    """Open tasks that nobody performs, with the queue that they wait in; without one, they wait for a host."""
    missing_version: str = ""
    """The version that it waits for and none of the living hosts has."""

    @property
    def is_hosted(self) -> bool:
        return self.is_owned or self.is_offered


async def living_hosts(service: RunService) -> Abouts:
    """Return the living hosts."""
    return {host.host: host.about for host in await service.store.hosts.list_all() if not host.gone}


def unoffered_version(row: RunRow, living: Abouts) -> str:
    """Return the version of a run of code if there are hosts and none of them offers it; else empty."""
    if not row.version or not views_of(row.style).is_code or any(_offers(about, row) for about in living.values()):
        return ""
    return row.version if living else ""


def _offers(about: Mapping[str, Any], row: RunRow) -> bool:
    versions = about.get("versions")
    if versions is None or not row.version:
        return row.workflow in about.get("workflows", ())
    return row.version in versions.get(row.workflow, ())


async def _is_offered(service: RunService, row: RunRow, living: Abouts) -> bool:
    if any(_offers(about, row) for about in living.values()):
        return True
    return bool(living) and await views_of(row.style).is_stored(service, row)


async def hosting_of(service: RunService, row: RunRow, machine: Machine | None) -> Hosting:
    """Find out who works on a run, from the hosts and the queues of the store."""
    living = await living_hosts(service)
    is_owned = row.owner in living
    is_offered = await _is_offered(service, row, living)
    missing = row.version if living and not (is_owned or is_offered) else ""
    tasks = machine.state.tasks if machine is not None else {}
    if not tasks:
        return Hosting(is_owned, is_offered, missing_version=missing)
    rows = {offer.task: offer.queue for offer in await service.store.tasks.rows(row.uid)}
    taken: set[int] = set()
    if rows:
        held = await service.store.tasks.taken_by(list(living), limit=HELD_MAX)
        taken = {offer.task for _, offer in held if offer.uid == row.uid}
    idle = {number: queue for number, queue in rows.items() if number not in taken}
    if not is_owned:
        idle.update({number: "" for number in tasks if number not in rows})
    return Hosting(is_owned, is_offered, {number: queue for number, queue in idle.items() if number in tasks}, missing)
