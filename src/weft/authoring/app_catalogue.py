"""The catalogues that an app passes to its host: its programs, steps and definitions, or a part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weft.authoring.bulk_workflow import bulk_program
from weft.authoring.goals import Goal
from weft.authoring.graphs import Graph
from weft.authoring.registrations import Registrations
from weft.authoring.unknown_work import unknown_work
from weft.authoring.workflows import Workflow
from weft.core.events import Policy, ScheduleSpec, Style, UndoPlan
from weft.core.findings import Finding
from weft.core.goal.definitions import StepDef
from weft.core.goal.plan import GoalPlan as CorePlan
from weft.core.goal.types import Type
from weft.core.graph.model import GraphModel
from weft.core.ids import GOAL, Millis
from weft.core.schedule.calendar import STORED, WORKFLOW, declared_version
from weft.errors import BadValue, WeftError
from weft.ports.definitions import Definition
from weft.runtime import bulk
from weft.runtime.catalogue import Callee
from weft.runtime.catalogue_log import CATALOGUE
from weft.runtime.programs import (
    AnyProgram,
    GoalProgram,
    GraphProgram,
    StoredGraph,
    graph_definition,
    graph_program,
    read_graph,
)
from weft.steps.task import StepBody

if TYPE_CHECKING:
    from weft.graphs.load import DocumentContext

BULK = (bulk.WORKFLOW, bulk.VERSION)


class AppCatalogue:
    """Everything that an app has registered, and the graphs that were read from the store."""

    def __init__(self, registered: Registrations) -> None:
        self._registered = registered
        self._programs: dict[tuple[str, str], GraphProgram] = {}
        self._goals: dict[str, GoalProgram] = {}
        self._definitions: dict[tuple[str, str], Definition] = {}
        self._bulk = bulk_program(registered)

    def steps(self) -> list[str]:
        return self._registered.step_names()

    def queues(self) -> list[str] | None:
        return None

    def step(self, name: str) -> StepBody | None:
        return self._registered.find_body(name)

    def program(self, workflow: str, version: str) -> AnyProgram | None:
        key = (workflow, version)
        found: AnyProgram | None = self._registered.programs.get(key) or self._programs.get(key)
        if found is None and version == "1":
            found = self._goals.get(workflow)
        if found is None:
            known = self._registered.known(workflow, version)
            if isinstance(known, Graph):
                found = self._programs[key] = self._graph_program(known.loaded.graph, version)
            elif isinstance(known, Goal) or key == (GOAL, "1"):
                goals = known.goals if isinstance(known, Goal) else ()
                found = self._goals[workflow] = GoalProgram(workflow, self, goals)
            elif key == BULK:
                found = self._bulk
        return found

    def _graph_program(self, graph: GraphModel, version: str) -> GraphProgram:
        return GraphProgram(graph, version, self, lambda other: graph_program(self.program(graph.name, other)))

    def programs(self) -> list[tuple[str, str]]:
        graphs = [(graph.name, graph.version) for graph in self._registered.graphs()]
        goals = [(GOAL, "1"), *((goal.name, goal.version) for goal in self._registered.goals())]
        versions = dict.fromkeys([*self._registered.workflow_versions(), *graphs, *goals, *self._programs])
        schedules = [(WORKFLOW, STORED), *((WORKFLOW, declared_version(name)) for name in self.schedules())]
        return list(dict.fromkeys([*versions, *((name, "") for name, _ in versions), *schedules, BULK]))

    def schedules(self) -> Mapping[str, ScheduleSpec]:
        return self._registered.schedules()

    def resolve(self, workflow: str, version: str) -> Callee | None:
        known = self._registered.known(workflow, version) if version else self._registered.newest(workflow)
        if known is not None:
            return Callee(known.version, known.style, known.timeout_ms)
        return Callee(version, "graph") if (workflow, version) in self._programs else None

    def style_of(self, workflow: str) -> str:
        """Return the style of a registered workflow; empty if there is none of this name."""
        callee = self.resolve(workflow, "")
        return callee.style if callee is not None else ""

    def input_names(self) -> dict[str, list[str]]:
        """Return the arguments that workflows take, in any of their versions. Those that take any are left out."""
        registered = self._registered
        taken: dict[str, list[str]] = {}
        for name, version in registered.workflow_versions():
            known = registered.known(name, version)
            if isinstance(known, Workflow):
                taken.setdefault(name, []).extend(one.name for one in known.signature.parameters)
        for graph in registered.graphs():
            schema = graph.loaded.graph.input
            if schema is not None and schema.get("additionalProperties") is False:
                taken[graph.name] = list(schema.get("properties", {}))
        return {name: sorted(set(names)) for name, names in taken.items()}

    def startable(self) -> list[str]:
        return self._registered.runnable_names()

    def definitions(self, now: Millis) -> list[Definition]:
        for graph in self._registered.graphs():
            if (graph.name, graph.version) not in self._definitions:
                loaded = graph.loaded
                definition = graph_definition(StoredGraph(loaded.source, loaded.graph, loaded.text), now=now)
                self._definitions[graph.name, graph.version] = definition
        return list(self._definitions.values())

    def document_context(self) -> DocumentContext:
        return self._registered.document_context()

    def learn(self, definition: Definition) -> None:
        key = (definition.name, definition.version)
        # A version is a hash of its content, so a graph that the app has registered need not be read.
        if definition.name != CATALOGUE and key not in self._programs and self._registered.known(*key) is None:
            self._programs[key] = self._graph_program(read_graph(definition).graph, definition.version)

    def learn_other(self, definition: Definition) -> bool:
        if definition.name != CATALOGUE and not unknown_work(read_graph(definition).graph, self._registered):
            self.learn(definition)
            return True
        return False

    def planned(self) -> list[StepDef]:
        return self._registered.planned()

    def own_steps(self) -> list[StepDef]:
        return self._registered.own_steps()

    def planned_step(self, name: str) -> StepDef | None:
        return self._registered.planned_step(name)

    def learn_steps(self, steps: Mapping[str, StepDef]) -> list[WeftError]:
        return self._registered.learn_steps(steps)

    def unknown_work(self, graph: GraphModel) -> list[Finding]:
        """Return a finding for every step, workflow and argument in a graph that the app does not have."""
        return unknown_work(graph, self._registered)

    def misfit(self, step: str, given: bytes) -> str:
        """Return why a step of the app does not take an input; empty if it does, or if the app does not have it."""
        found = self._registered.find_step(step)
        if found is None:
            return ""
        try:
            found.signature.unpack(given, what=step)
        except BadValue as error:
            return error.message
        return ""

    # --- used by programs -----------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        return self._registered.revision

    def step_policy(self, step: str) -> Policy | None:
        return self._registered.step_policy(step)

    def step_undo(self, step: str) -> UndoPlan | None:
        return self._registered.step_undo(step)

    def step_parameters(self, step: str) -> list[str] | None:
        return self._registered.step_parameters(step)

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> CorePlan:
        return self._registered.make_plan(goals, given)

    def fact_type(self, fact: str) -> Type:
        return self._registered.planner.fact_type(fact)

    def refuse_unknown_work(self, workflow: str, version: str) -> None:
        known = self._registered.known(workflow, version)
        if isinstance(known, Graph):
            known.refuse_unknown(self._registered)

    def callee(self, workflow: str) -> tuple[str, Style] | None:
        found = self._registered.newest(workflow)
        return (found.version, found.style) if found is not None else None


class QueueCatalogue(AppCatalogue):
    """The catalogue of a host that performs steps only from some queues. Workers elsewhere perform the others."""

    def __init__(self, registered: Registrations, queues: Sequence[str]) -> None:
        super().__init__(registered)
        self._queues = sorted(queues)

    def queues(self) -> list[str] | None:
        return self._queues


class WorkerCatalogue(AppCatalogue):
    """The catalogue of a worker: it performs steps from some queues, for runs that other processes host."""

    def __init__(self, registered: Registrations, queues: Sequence[str]) -> None:
        super().__init__(registered)
        self._queues = sorted(queues) or None

    def queues(self) -> list[str] | None:
        return self._queues

    def programs(self) -> list[tuple[str, str]]:
        return []

    def schedules(self) -> Mapping[str, ScheduleSpec]:
        return {}

    def definitions(self, now: Millis) -> list[Definition]:
        return []
