"""The versions of workflows that living hosts have registered."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ports.hosts import Hosts
from weft.runtime.service import RunService


async def offered_versions(service: RunService) -> Sequence[tuple[str, str]]:
    """Return the workflows and versions that living hosts describe. A tenant cannot see the hosts."""
    hosts: Hosts | None = getattr(service.store, "hosts", None)
    living = [host for host in await hosts.list_all() if not host.gone] if hosts is not None else []
    described = [item for host in living for item in host.about.get("versions", {}).items()]
    return list(dict.fromkeys((name, version) for name, versions in described for version in versions))


async def is_offered(service: RunService, workflow: str, version: str) -> bool:
    """Return whether a living host has this version: the host of this process, or another one."""
    local = service.local
    if local is not None and (workflow, version) in local.catalogue.programs():
        return True
    return (workflow, version) in await offered_versions(service)
