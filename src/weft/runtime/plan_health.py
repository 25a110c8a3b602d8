"""Derive the health of steps that run other steps from the health of those steps.

An unhealthy step makes the step that runs it unhealthy, and is named. Steps with unknown health are ignored. A step
whose goals cannot be planned is unhealthy too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weft.core.goal.catalogue import Checkup
from weft.core.goal.definitions import GoalWay, StepDef, WorkflowWay, inner_name
from weft.core.goal.plan import GoalPlan, check_complete
from weft.core.graph.model import GoalWork, StepWork, WorkflowWork
from weft.errors import UsageError
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.programs import GraphProgram, graph_program

HEALTHY = Checkup("healthy")
UNKNOWN = Checkup()


def runs_others(step: StepDef) -> bool:
    """Return whether a step runs other steps, so that its health follows from theirs."""
    return isinstance(step.way, GoalWay | WorkflowWay)


class PlanHealth:
    """Derives the health of steps that run other steps."""

    def __init__(self, catalogue: HostCatalogue, known: Mapping[str, Checkup]) -> None:
        self._catalogue = catalogue
        self._known = known
        self._derived: dict[str, Checkup] = {}

    def of(self, step: StepDef) -> Checkup:
        """Return the health of a step that runs other steps."""
        match step.way:
            case GoalWay(goals=goals):
                given = [inner_name(fact, need) for fact, need in step.needs.items() if need.is_sure]
                return self._of_goals(goals, given)
            case WorkflowWay(workflow=workflow, version=version):
                return self._of_workflow(workflow, version)
        return self._known.get(step.id, UNKNOWN)

    def _of_step(self, step: StepDef) -> Checkup:
        if not runs_others(step):
            return self._known.get(step.id, UNKNOWN)
        if step.id not in self._derived:
            self._derived[step.id] = UNKNOWN  # ends the recursion if a graph calls itself
            self._derived[step.id] = self.of(step)
        return self._derived[step.id]

    def _of_goals(self, goals: Sequence[str], given: Sequence[str]) -> Checkup:
        try:
            plan: GoalPlan = self._catalogue.plan(goals, given)
            check_complete(plan)
        except UsageError as error:
            return Checkup("unhealthy", error.message)
        return _worst_checkup((step.id, self._of_step(step)) for step in plan.steps.values())

    def _of_workflow(self, workflow: str, version: str) -> Checkup:
        """Return the health of a workflow: for a graph, that of its nodes; for code, whether this host has it."""
        callee = self._catalogue.callee(workflow)
        if callee is None:
            return UNKNOWN
        program = self._catalogue.program(workflow, version or callee[0])
        graph = graph_program(program)
        if graph is None:
            return HEALTHY if program is not None else UNKNOWN
        return _worst_checkup(self._of_nodes(graph))

    def _of_nodes(self, program: GraphProgram) -> Iterator[tuple[str, Checkup]]:
        for node in program.graph.nodes.values():
            match node.work:
                case StepWork(step=name):
                    step = self._catalogue.planned_step(name)
                    if step is not None:
                        yield name, self._of_step(step)
                case WorkflowWork(workflow=name, version=version) if name != program.name:
                    yield name, self._of_workflow(name, version)
                case GoalWork(goals=goals):
                    for name in goals:
                        step = self._catalogue.planned_step(name)
                        yield name, self._of_step(step) if step is not None else UNKNOWN


def _worst_checkup(parts: Iterator[tuple[str, Checkup]]) -> Checkup:
    for name, checkup in parts:
        if checkup.status == "unhealthy":
            return Checkup("unhealthy", f"{name}: {checkup.error}")
    return HEALTHY
