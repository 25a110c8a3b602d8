"""The steps, workflows and node types that living hosts have, and what a new version of a graph lacks among them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from weft.core.graph.model import GraphModel, StepWork, TypeWork, WorkflowWork
from weft.core.run.patch_plan import PatchRefusal
from weft.ports.hosts import Hosts
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.catalogue_log import StoredCatalogue
from weft.steps.definition import DEFINED
from weft.steps.node_types import node_types

Kind = Literal["step", "workflow", "type"]
_LISTED: Mapping[Kind, str] = {"step": "steps", "workflow": "workflows", "type": "types"}
"""Where the description of a host lists the names of a kind."""


async def not_hosted(
    new: GraphModel, old: GraphModel, catalogue: HostCatalogue | None, hosts: Hosts | None, stored: StoredCatalogue
) -> list[PatchRefusal]:
    """Return what the new version names and no living host has. What the old version names is not asked about.

    A host that does not say what it has may have everything. If there is no host to ask, nothing is missing.
    """
    known = {name for name, _ in _work_named_in(old)}
    named = {name: path for name, path in _work_named_in(new) if name not in known and name[1] != new.name}
    lacking = {name: path for name, path in named.items() if catalogue is None or not _has(catalogue, *name)}
    if not lacking:
        return []
    living = [host.about for host in await hosts.list_all() if not host.gone] if hosts is not None else []
    if catalogue is None and not living:
        return []
    await stored.refresh()
    return [
        _not_offered(kind, name, path)
        for (kind, name), path in lacking.items()
        if not _is_offered(kind, name, living) and not (kind == "step" and name in stored.steps)
    ]


def _work_named_in(graph: GraphModel) -> Iterator[tuple[tuple[Kind, str], str]]:
    """Yield what the nodes of a graph name, with the path in the document. A queue may have workers of its own."""
    for node in graph.nodes.values():
        work = node.work
        if isinstance(work, StepWork) and not node.queue and work.step != DEFINED:
            yield ("step", work.step), f"nodes.{node.id}.step"
        elif isinstance(work, WorkflowWork):
            yield ("workflow", work.workflow), f"nodes.{node.id}.workflow"
        elif isinstance(work, TypeWork):
            yield ("type", work.type), f"nodes.{node.id}.type"
        if node.undo is not None:
            yield ("step", node.undo.step), f"nodes.{node.id}.undo"


def _has(catalogue: HostCatalogue, kind: Kind, name: str) -> bool:
    match kind:
        case "step":
            return catalogue.step(name) is not None or catalogue.planned_step(name) is not None
        case "workflow":
            return catalogue.callee(name) is not None
        case _:
            return name in node_types()


def _is_offered(kind: Kind, name: str, living: Sequence[Mapping[str, Any]]) -> bool:
    listed: list[Collection[str] | None] = [about.get(_LISTED[kind]) for about in living]
    return any(names is None or name in names for names in listed)


def _not_offered(kind: Kind, name: str, path: str) -> PatchRefusal:
    what = "node type" if kind == "type" else kind
    text = f"no host has the {what} {name}"
    hint = f"Deploy a host that has the {what} first, or correct the name."
    return PatchRefusal("patch.not_hosted", text, path=path, hint=hint)
