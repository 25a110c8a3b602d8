"""What a check of open runs finds about one run, and what it needs to know about the code of this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.core.events import DEFAULT_POLICY
from weft.core.findings import Finding
from weft.core.graph.model import GraphModel
from weft.core.machine import Machine
from weft.core.run.patch_plan import PatchPlan, PatchRefusal
from weft.ports.store import RunRow
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.patches import PatchOptions, PatchService
from weft.runtime.service import RunService

HARMLESS = frozenset({"fits", "unvisited", "replanned"})
"""The verdicts with which a run goes on."""


class CheckedCode(HostCatalogue, Protocol):
    """The workflows and steps of this process, which open runs are checked against."""

    def unknown_work(self, graph: GraphModel) -> Sequence[Finding]:
        """Return a finding for every step, workflow and argument in a graph that this process does not have."""
        ...

    def misfit(self, step: str, given: bytes) -> str:
        """Return why a step of this process does not take an input; empty if it does, or if it is not here."""
        ...


class LiveChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is tried on every run. Nothing is applied."""

    patch: Mapping[str, Any] = {}
    """A patch of code and graph runs, such as ``{"to": "2"}``."""
    replan: bool = False
    """Plan goal runs again, with the steps of now."""

    @property
    def to(self) -> str:
        """The version or tag that the runs would follow."""
        return str(self.patch.get("to", ""))


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """An open run that is checked, and the code that it is checked against."""

    service: RunService
    row: RunRow
    code: CheckedCode
    tolerant: bool = False
    change: LiveChange = LiveChange()

    async def dry_run(self, patch: Mapping[str, Any]) -> PatchPlan:
        """Return what a patch would do to this run. Raises BadPatch, BadGraph, Refused."""
        return await PatchService(self.service, self.code).patch(self.row.id, patch, PatchOptions(dry_run=True))


class LiveFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict about one run, and the place that it is about."""

    verdict: str = "fits"
    """A word, or the code of the first reason that refuses a change, such as ``patch.node_removed``."""
    place: str = ""
    recorded: str = ""
    asked: str = ""
    message: str = ""


def not_hosted_finding(run: LiveRun, version: str = "") -> LiveFinding:
    """Return the finding about a run whose workflow or version is not here."""
    wanted = version or run.row.version
    text = f" in version {wanted}" if wanted else ""
    return LiveFinding(verdict="not hosted", message=f"There is no {run.row.workflow}{text} here.")


def refused_change(refusal: PatchRefusal) -> LiveFinding:
    """Return the finding about a run that refuses a change."""
    message = f"{refusal.message.rstrip('.')}. {refusal.hint}".rstrip()
    return LiveFinding(
        verdict=refusal.code,
        place=refusal.place,
        recorded=refusal.recorded,
        asked=refusal.asked,
        message=message,
    )


async def input_misfits(run: LiveRun, machine: Machine) -> AsyncIterator[tuple[int, str]]:
    """Yield the tasks in flight whose steps here no longer take their inputs, and why.

    Steps of other queues are left out, because workers elsewhere perform them.
    """
    for number, task in machine.state.tasks.items():
        if task.policy.queue == DEFAULT_POLICY.queue:
            why = run.code.misfit(task.step, await run.service.values.load(bytes(task.input)))
            if why:
                yield number, why
