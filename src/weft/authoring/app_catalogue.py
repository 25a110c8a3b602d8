"""The catalogues that an app passes to its host: its programs, steps and definitions, or a part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.authoring.goals import Goal
from weft.authoring.graphs import Graph
from weft.authoring.registrations import Registrations
from weft.authoring.unknown_work import unknown_work
from weft.core.events import Policy, ScheduleSpec, Style, UndoPlan
from weft.core.goal.definitions import StepDef
from weft.core.goal.plan import GoalPlan as CorePlan
from weft.core.goal.types import Type
from weft.core.ids import GOAL, Millis
from weft.core.schedule.calendar import STORED, WORKFLOW, declared_version
from weft.errors import WeftError
from weft.ports.store import Definition
from weft.runtime.catalogue import Callee
from weft.runtime.catalogue_log import CATALOGUE
from weft.runtime.programs import AnyProgram, GoalProgram, GraphProgram, graph_definition, read_graph
from weft.steps.task import StepBody


class AppCatalogue:
    """Everything that an app has registered, and the graphs that were read from the store."""

    def __init__(self, registered: Registrations) -> None:
        self._registered = registered
        self._programs: dict[tuple[str, str], GraphProgram] = {}
        self._goals: dict[str, GoalProgram] = {}
        self._definitions: dict[tuple[str, str], Definition] = {}

    def step(self, name: str) -> StepBody | None:
        return self._registered.find_body(name)

    def steps(self) -> list[str]:
        return self._registered.step_names()

    def queues(self) -> list[str] | None:
        return None

    def program(self, workflow: str, version: str) -> AnyProgram | None:
        registered = self._registered
        found: AnyProgram | None = registered.find_program(workflow, version) or self._programs.get((workflow, version))
        if found is None:
            known = registered.known(workflow, version)
            if isinstance(known, Graph):
                found = self._programs[workflow, version] = GraphProgram(known.loaded.graph, version, self)
            elif isinstance(known, Goal) or (workflow, version) == (GOAL, "1"):
                goals = known.goals if isinstance(known, Goal) else ()
                found = self._goals.setdefault(workflow, GoalProgram(workflow, self, goals))
        return found

    def programs(self) -> list[tuple[str, str]]:
        graphs = [(graph.name, graph.version) for graph in self._registered.graphs()]
        goals = [(GOAL, "1"), *((goal.name, goal.version) for goal in self._registered.goals())]
        versions = dict.fromkeys([*self._registered.workflow_versions(), *graphs, *goals, *self._programs])
        schedules = [(WORKFLOW, STORED), *((WORKFLOW, declared_version(name)) for name in self.schedules())]
        return list(dict.fromkeys([*versions, *((name, "") for name, _ in versions), *schedules]))

    def schedules(self) -> Mapping[str, ScheduleSpec]:
        return self._registered.schedules()

    def resolve(self, workflow: str, version: str) -> Callee | None:
        known = self._registered.known(workflow, version) if version else self._registered.newest(workflow)
        if known is not None:
            return Callee(known.version, known.style, known.timeout_ms)
        return Callee(version, "graph") if (workflow, version) in self._programs else None

    def startable(self) -> list[str]:
        return self._registered.runnable_names()

    def definitions(self, now: Millis) -> list[Definition]:
        for graph in self._registered.graphs():
            if (graph.name, graph.version) not in self._definitions:
                definition = graph_definition(graph.loaded.graph, graph.loaded.source, now=now)
                self._definitions[graph.name, graph.version] = definition
        return list(self._definitions.values())

    def learn(self, definition: Definition) -> None:
        key = (definition.name, definition.version)
        # A version is a hash of its content, so a graph that the app has registered need not be read.
        if definition.name != CATALOGUE and key not in self._programs and self._registered.known(*key) is None:
            self._programs[key] = GraphProgram(read_graph(definition).graph, definition.version, self)

    def learn_other(self, definition: Definition) -> bool:
        if definition.name != CATALOGUE and not unknown_work(read_graph(definition).graph, self._registered):
            self.learn(definition)
            return True
        return False

    def planned(self) -> list[StepDef]:
        return self._registered.planned()

    def planned_step(self, name: str) -> StepDef | None:
        return self._registered.planned_step(name)

    def learn_steps(self, steps: Mapping[str, StepDef]) -> list[WeftError]:
        return self._registered.learn_steps(steps)

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
