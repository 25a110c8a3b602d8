"""Find the hosts of a run: its owner, the hosts that could claim it, and the workers of its open tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core.ids import HostId
from weft.core.machine import Machine
from weft.observe.diagnosis import IdleTask
from weft.observe.idle_task import held_tasks, idle_task, published
from weft.observe.styles import views_of
from weft.ports.hosts import Hosts
from weft.ports.store import RunRow
from weft.runtime.hooks import WORKFLOW as HOOK
from weft.runtime.service import RunService

HELD_MAX = 10_000


LiveHosts = Mapping[HostId, Mapping[str, Any]]
"""The live hosts, each with its description of itself: its workflows, versions and queues."""


class Hosting(msgspec.Struct, frozen=True):
    """Which hosts work on a run, or could do so."""

    is_owned: bool
    """Whether a live host owns the run."""
    is_offered: bool
    """Whether a live host has the workflow of the run. It claims the run when there is something to do."""
    idle: Mapping[int, IdleTask] = {}
    """The open tasks that no worker performs."""
    missing_version: str = ""
    """The version of the run, if none of the live hosts has it."""

    @property
    def is_hosted(self) -> bool:
        return self.is_owned or self.is_offered


async def live_hosts(service: RunService) -> LiveHosts:
    """Return the live hosts of a store. Empty for a tenant, which cannot see the hosts."""
    hosts: Hosts | None = getattr(service.store, "hosts", None)
    return await _live_of(hosts) if hosts is not None else {}


async def _live_of(hosts: Hosts) -> LiveHosts:
    return {host.host: host.about for host in await hosts.list_all() if not host.gone}


def unoffered_version(row: RunRow, live: LiveHosts) -> str:
    """Return the version of a code run if there are live hosts and none of them offers it, and otherwise "".

    Deliveries to hooks are treated like code: only hosts with the step of the hook run them.
    """
    in_code = views_of(row.style).is_code or row.workflow == HOOK
    if not row.version or not in_code or any(_offers_version(about, row) for about in live.values()):
        return ""
    return row.version if live else ""


def _offers_version(about: Mapping[str, Any], row: RunRow) -> bool:
    versions = about.get("versions")
    if versions is None or not row.version:
        return row.workflow in about.get("workflows", ())
    return row.version in versions.get(row.workflow, ())


async def _is_offered(service: RunService, row: RunRow, live: LiveHosts) -> bool:
    if any(_offers_version(about, row) for about in live.values()):
        return True
    if row.workflow == HOOK:
        return False  # only hosts with the step of the hook deliver
    return bool(live) and await views_of(row.style).is_stored(service, row)


async def hosting_of(service: RunService, row: RunRow, machine: Machine | None) -> Hosting:
    """Find the hosts of a run in the tables of hosts and queues of the store.

    A tenant learns only whether there are any. If it asks a server elsewhere for single reads, it does not learn even
    that, and a run counts as hosted.
    """
    store = service.whole_store
    hosts: Hosts | None = getattr(store, "hosts", None)
    if hosts is None:
        return Hosting(is_owned=row.owner is not None, is_offered=True)
    live = await _live_of(hosts)
    is_owned = row.owner in live
    is_offered = await _is_offered(service, row, live)
    missing = row.version if live and not (is_owned or is_offered) else ""
    tasks = machine.state.tasks if machine is not None else {}
    if not tasks:
        return Hosting(is_owned, is_offered, missing_version=missing)
    rows = {offer.task: offer for offer in await store.tasks.rows(row.uid)}
    taken: set[int] = set()
    if rows:
        held = await store.tasks.taken_by(list(live), limit=HELD_MAX, with_body=False)
        taken = {offer.task for _, offer in held if offer.uid == row.uid}
        taken |= await published(service, [offer for number, offer in rows.items() if number not in taken])
    idle = {number: await idle_task(service, offer) for number, offer in rows.items() if number not in taken}
    idle.update({number: task for number, task in (await held_tasks(service, tasks)).items() if number not in taken})
    if not is_owned:
        idle.update({number: IdleTask() for number in tasks if number not in rows})
    return Hosting(is_owned, is_offered, {number: task for number, task in idle.items() if number in tasks}, missing)
