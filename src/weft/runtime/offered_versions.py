"""The versions of workflows that living hosts have registered, and those that a tenant may know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from weft.core.findings import did_you_mean
from weft.errors import BadValue, NameTaken
from weft.ports.definitions import VERSION_MARK
from weft.ports.hosts import Hosts
from weft.ports.run_query import RunQuery
from weft.ports.store import RunRow
from weft.runtime.programs import needs_definition
from weft.runtime.service import RunService
from weft.runtime.version_refs import check_workflow_name
from weft.steps.argument_types import is_of_type

MOVES_MAX = 1_000
"""How many moves of each of its tags show a tenant the versions that it may know."""


async def offered_versions(service: RunService) -> Mapping[tuple[str, str], str]:
    """Return the workflows and versions that living hosts describe, with their styles. A tenant cannot see the hosts.

    The style is empty for the programs of Weft itself, such as the one for goals that were named by steps.
    """
    hosts: Hosts | None = getattr(service.store, "hosts", None)
    living = [host for host in await hosts.list_all() if not host.gone] if hosts is not None else []
    return {
        (name, version): host.about.get("styles", {}).get(name, "")
        for host in living
        for name, versions in host.about.get("versions", {}).items()
        for version in versions
    }


async def hosted_workflow_names(service: RunService) -> set[str]:
    """Return the names of the workflows that the host of this process and other living hosts have.

    Empty for a tenant, which cannot see the hosts.
    """
    hosts: Hosts | None = getattr(service.store, "hosts", None)
    if hosts is None:
        return set()
    own = service.local.catalogue.startable() if service.local is not None else ()
    living = [host.about for host in await hosts.list_all() if not host.gone]
    return {*own, *(name for about in living for name in about.get("workflows", ()))}


async def check_graph_name(service: RunService, name: str, *, style: str = "") -> None:
    """Check that a graph may be stored under a name, which is not that of a code workflow or of a goal.

    Counts what the host of this process and other living hosts have registered. ``style`` is that of the workflow of
    this name in an app that nothing hosts yet. Raises BadValue, NameTaken.
    """
    check_workflow_name(name)
    here = service.local.catalogue.resolve(name, "") if service.local is not None else None
    styles = {found for (other, _), found in (await offered_versions(service)).items() if other == name}
    styles.add(here.style if here is not None else style or "graph")
    if styles != {"graph"}:
        raise NameTaken(
            f'"{name}" is the name of a workflow that is not a graph.', hint="Choose another name for the graph."
        )


async def offered_steps(service: RunService) -> list[str] | None:
    """Return the names of the steps that this process and living hosts have; None if no host is seen."""
    hosts: Hosts | None = getattr(service.store, "hosts", None)
    living = [host.about for host in await hosts.list_all() if not host.gone] if hosts is not None else []
    if service.known_code is None and not living:
        return None
    own = service.known_code.steps() if service.known_code is not None else ()
    return [*own, *(name for about in living for name in about.get("steps", ()))]


async def check_offered_input(
    service: RunService, workflow: str, given: Mapping[str, Any], words: Collection[str] = ()
) -> None:
    """Check that a living host takes these arguments, as far as hosts describe what they take.

    ``words`` are the arguments that were typed, which hosts read by their types.

    Raises:
        BadValue: it names all that none of them takes, or that have a type which none of them takes.
    """
    taken = await _described_arguments(service, workflow, "inputs")
    known = sorted({name for names in taken for name in names})
    unknown = [name for name in given if name not in known] if taken else []
    if unknown:
        near = did_you_mean(unknown[0], known)
        raise BadValue(
            f"{workflow} has no argument {_quote_names(unknown)}.{f' {near}' if near else ''}",
            hint=f"It takes: {', '.join(known) or 'nothing'}.",
            code="value.wrong_type",
        )
    types = await _described_arguments(service, workflow, "types_of_inputs")
    wrong = {
        name: sorted({one for types_of in types for one in types_of[name]})
        for name, value in given.items()
        if types
        and all(name in types_of and not is_of_type(value, types_of[name], is_word=name in words) for types_of in types)
    }
    if wrong:
        said = "; ".join(f"{_quote_names([name])} must be {' or '.join(found)}" for name, found in wrong.items())
        raise BadValue(f"{workflow} does not take this input: {said}.", code="value.wrong_type")


async def check_offered_start(
    service: RunService, workflow: str, given: Mapping[str, Any], words: Collection[str] = ()
) -> None:
    """Check the arguments of a start, as far as hosts describe what they take. ``words`` as for an input.

    Raises:
        BadValue: it names all that no living host takes, or those that all of them need.
    """
    await check_offered_input(service, workflow, given, words)
    needed = await _described_arguments(service, workflow, "required")
    missing = sorted(set[str].intersection(*map(set, needed)).difference(given)) if needed else []
    if missing:
        raise BadValue(
            f"{workflow} needs {_quote_names(missing)}.",
            hint=f"Give it by name: {' '.join(f'{name}=…' for name in missing)}",
            code="value.wrong_type",
        )


async def _described_arguments(service: RunService, workflow: str, what: str) -> list[Any]:
    """Return what each living host that has the workflow says of its arguments; nothing if one does not say."""
    hosts: Hosts | None = getattr(service.store, "hosts", None)
    living = [host.about for host in await hosts.list_all() if not host.gone] if hosts is not None else []
    found = [about.get(what, {}).get(workflow) for about in living if workflow in about.get("workflows", ())]
    return [] if None in found else found


def _quote_names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name[:60]}"' for name in names)


async def warn_if_not_offered(service: RunService, workflow: str) -> str:
    """Return a warning if there are hosts, none of them offers the workflow, and the store has no such graph."""
    offered = await hosted_workflow_names(service)
    if not offered or workflow in offered:
        return ""
    known = {*offered, *(name for name, _ in await service.store.definitions.names("graph"))}
    if workflow in known:
        return ""
    near = did_you_mean(workflow, sorted(known))
    return f"No running host offers {workflow}, so its runs wait until one does. {near}".rstrip()


async def is_offered(service: RunService, workflow: str, version: str) -> bool:
    """Return whether a living host has this version: the host of this process, or another one."""
    local = service.local
    if local is not None and (workflow, version) in local.catalogue.programs():
        return True
    return (workflow, version) in await offered_versions(service)


async def is_hosted(service: RunService, row: RunRow) -> bool | None:
    """Return whether a living host has this run or can claim it. None: a tenant cannot see the hosts."""
    hosts: Hosts | None = getattr(service.store, "hosts", None)
    if hosts is None:
        return None
    living = [host.host for host in await hosts.list_all() if not host.gone]
    # Every host finds the definition of a graph in the store.
    return (
        row.owner in living
        or bool(living and needs_definition(row.style))
        or await is_offered(service, row.workflow, row.version)
    )


async def sees_version(service: RunService, name: str, version: str) -> bool:
    """Return whether a caller may know a stored version. The operator may know all.

    A tenant may know what a process hosted, and what its runs, its tags or those of the operator name.
    """
    stored = await service.store.definitions.get(name, version) if service.tenant else None
    if stored is None or stored.origin == "hosted":
        return True
    directory, tags = service.store.directory, service.store.tags
    if (name, version) in await directory.open_versions():
        return True
    marked = RunQuery(workflow=name, where={f"{VERSION_MARK}{version}": True}, limit=1)
    if (await directory.search(marked)).rows:
        return True
    for tag in await service.tags.list(name):
        if any(move.after == version for move in await tags.moves(tag.key, limit=MOVES_MAX)):
            return True
    return False
