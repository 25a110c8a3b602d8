"""What a check of open runs finds about one run, and what it needs to know about the code of this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

import msgspec

from weft.core.decider import Machine
from weft.core.events import DEFAULT_POLICY
from weft.core.findings import Finding
from weft.core.goal.definitions import StepDef
from weft.core.graph.model import GraphModel
from weft.ports.store import RunRow
from weft.runtime.programs import AnyProgram
from weft.runtime.service import RunService
from weft.steps.task import StepBody

LiveVerdict = Literal[
    "fits", "unvisited", "diverges", "raises", "value", "input", "changed", "not hosted", "unreadable"
]
HARMLESS: frozenset[LiveVerdict] = frozenset({"fits", "unvisited"})
"""The verdicts with which a run goes on."""


class CheckedCode(Protocol):
    """The workflows and steps of this process, which open runs are checked against."""

    def program(self, workflow: str, version: str) -> AnyProgram | None: ...

    def step(self, name: str) -> StepBody | None: ...

    def startable(self) -> Sequence[str]:
        """Return the names of the workflows that are registered here."""
        ...

    def planned_step(self, name: str) -> StepDef | None:
        """Return one of the steps that goals are planned with."""
        ...

    def unknown_work(self, graph: GraphModel) -> Sequence[Finding]:
        """Return a finding for every step, workflow and argument in a graph that this process does not have."""
        ...

    def misfit(self, step: str, given: bytes) -> str:
        """Return why a step of this process does not take an input; empty if it does, or if it is not here."""
        ...


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """An open run that is checked, and the code that it is checked against."""

    service: RunService
    row: RunRow
    code: CheckedCode
    tolerant: bool = False


class LiveFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict about one run, and the place that it is about."""

    verdict: LiveVerdict = "fits"
    place: str = ""
    recorded: str = ""
    asked: str = ""
    message: str = ""


def not_hosted(run: LiveRun) -> LiveFinding:
    """Return the finding about a run whose workflow or version is not here."""
    version = f" in version {run.row.version}" if run.row.version else ""
    return LiveFinding(verdict="not hosted", message=f"There is no {run.row.workflow}{version} here.")


async def misfits(run: LiveRun, machine: Machine) -> AsyncIterator[tuple[int, str]]:
    """Yield the tasks in flight whose steps here no longer take their inputs, and why.

    Steps of other queues are left out, because workers elsewhere perform them.
    """
    for number, task in machine.state.tasks.items():
        if task.policy.queue == DEFAULT_POLICY.queue:
            why = run.code.misfit(task.step, await run.service.values.load(bytes(task.input)))
            if why:
                yield number, why
