"""What a new version of a graph asks of hosts that none of them has: steps, arguments, workflows, node types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from weft.core.findings import Finding
from weft.core.graph.model import GraphModel, Node, StepWork, TypeWork, WorkflowWork
from weft.core.run.patch_plan import PatchRefusal
from weft.ports.hosts import Hosts
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.catalogue_log import StoredCatalogue
from weft.steps.definition import DEFINED
from weft.steps.node_types import node_types
from weft.steps.step_arguments import StepArguments, given_arguments, wrong_arguments

Kind = Literal["step", "workflow", "type"]
_LISTED: Mapping[Kind, str] = {"step": "steps", "workflow": "workflows", "type": "types"}
"""Where the description of a host lists the names of a kind."""


async def refused_work(
    new: GraphModel, old: GraphModel, catalogue: HostCatalogue | None, hosts: Hosts | None, stored: StoredCatalogue
) -> list[PatchRefusal]:
    """Return what the new version names and no living host has, and the arguments that none of them takes.

    What the old version says too is not asked about. A host that does not say what it has may have everything.
    If there is no host to ask, nothing is refused.
    """
    known = {name for name, _ in _work_named_in(old)}
    named = {name: path for name, path in _work_named_in(new) if name not in known and name[1] != new.name}
    lacking = {name: path for name, path in named.items() if catalogue is None or not _is_hosted(catalogue, *name)}
    calls = [call for call in _changed_calls(new, old) if catalogue is None or not call.is_taken_by(catalogue)]
    if not lacking and not calls:
        return []
    living = [host.about for host in await hosts.list_all() if not host.gone] if hosts is not None else []
    if catalogue is None and not living:
        return []
    if lacking:
        await stored.refresh()
    missing = [
        _not_offered(kind, name, path)
        for (kind, name), path in lacking.items()
        if not _is_offered(kind, name, living) and not (kind == "step" and name in stored.steps)
    ]
    wrong = [_refused_arguments(call, catalogue, living) for call in calls]
    return [*missing, *(refusal for refusals in wrong for refusal in refusals)]


class _StepCall(msgspec.Struct, frozen=True):
    """A node that gives arguments to a step by name."""

    node: Node
    step: str
    given: Mapping[str, Any]

    def findings(self, arguments: StepArguments) -> list[Finding]:
        return wrong_arguments(self.node, self.step, self.given, arguments)

    def is_taken_by(self, catalogue: HostCatalogue) -> bool:
        arguments = catalogue.step_arguments(self.step)
        return arguments is not None and not self.findings(arguments)


def _changed_calls(new: GraphModel, old: GraphModel) -> list[_StepCall]:
    """Return the calls of steps with arguments with which the old version did not call them."""
    known = {(call.node.id, call.step, frozenset(call.given)) for call in _step_calls(old)}
    return [call for call in _step_calls(new) if (call.node.id, call.step, frozenset(call.given)) not in known]


def _step_calls(graph: GraphModel) -> Iterator[_StepCall]:
    for node in graph.nodes.values():
        given = given_arguments(node)
        if given is not None and isinstance(node.work, StepWork):
            yield _StepCall(node, node.work.step, given)


def _refused_arguments(
    call: _StepCall, catalogue: HostCatalogue | None, living: Sequence[Mapping[str, Any]]
) -> list[PatchRefusal]:
    """Return what is wrong with the arguments of a call, unless a process takes them."""
    described = [about["steps"][call.step] for about in living if call.step in about.get("steps", ())]
    taken = [StepArguments(one["takes"], one["needs"]) for one in described]
    own = catalogue.step_arguments(call.step) if catalogue is not None else None
    found = [call.findings(arguments) for arguments in ([own, *taken] if own is not None else taken)]
    wrong = found[0] if found and all(found) else []
    return [
        PatchRefusal("patch.wrong_argument", one.message.rstrip("."), path=one.path, hint=one.suggestion)
        for one in wrong
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


def _is_hosted(catalogue: HostCatalogue, kind: Kind, name: str) -> bool:
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
