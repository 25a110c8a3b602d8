"""The catalogues that an app passes to its host: its programs, steps and definitions, or a part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from weft.authoring.bulk_workflow import bulk_program
from weft.authoring.context import THE_CONTEXT
from weft.authoring.goals import Goal
from weft.authoring.graphs import Graph
from weft.authoring.open_resources import OpenResources
from weft.authoring.registrations import Registrations
from weft.authoring.runnable import Runnable
from weft.authoring.unknown_work import unknown_work
from weft.authoring.workflows import Workflow
from weft.core.events import Policy, ScheduleSpec, Style, UndoPlan
from weft.core.findings import Finding
from weft.core.goal.definitions import StepDef
from weft.core.goal.plan import GoalPlan as CorePlan
from weft.core.goal.types import Type
from weft.core.graph.hosted import AgentCall, AgentOrder
from weft.core.graph.model import GraphModel
from weft.core.graph.ways import Ways
from weft.core.ids import GOAL, Millis
from weft.core.schedule.calendar import STORED, WORKFLOW, declared_version
from weft.core.start_rules import StartRule
from weft.errors import BadValue, WeftError
from weft.ports.definitions import Definition
from weft.runtime import bulk
from weft.runtime.catalogue import Callee
from weft.runtime.catalogue_log import CATALOGUE, Learning
from weft.runtime.hooks import WORKFLOW as HOOK
from weft.runtime.hooks import HookTable
from weft.runtime.key_limits import DeclaredLimit
from weft.runtime.programs import (
    AnyProgram,
    GoalProgram,
    GraphProgram,
    StoredGraph,
    graph_definition,
    graph_program,
    read_graph,
)
from weft.runtime.start_rules import DeclaredRule
from weft.steps.argument_types import either_type
from weft.steps.signature import Injected
from weft.steps.step_arguments import StepArguments
from weft.steps.task import StepBody

if TYPE_CHECKING:
    from weft.agents.mcp.servers import McpServer
    from weft.agents.models.aliases import ModelAliases
    from weft.agents.policy.policy_rules import PolicyRules
    from weft.authoring.agents.workflow import AgentGroup, AgentProgram
    from weft.graphs.load import DocumentContext

BULK = (bulk.WORKFLOW, bulk.VERSION)
AGENT = ("weft.agent", "1")
"""The workflow of agents that documents describe."""


class AppCatalogue:
    """Everything that an app has registered, and the graphs that were read from the store."""

    def __init__(self, registered: Registrations) -> None:
        self._registered = registered
        self._programs: dict[tuple[str, str], GraphProgram] = {}
        self._goals: dict[str, tuple[Goal | None, GoalProgram]] = {}
        """By name, with what declared it: in a notebook, a name can be declared again."""
        self._definitions: dict[tuple[str, str], Definition] = {}
        self._defined: tuple[Definition, ...] = ()
        self._defined_at = (-1, -1)
        """The revision of what is registered, and the number of hooks' graphs, to which ``_defined`` belongs."""
        self._bulk = bulk_program(registered)

    def steps(self) -> list[str]:
        return self._registered.step_names()

    def queues(self) -> list[str] | None:
        return None

    def open_resources(self) -> OpenResources:
        """Return the resources of the app, all of them closed."""
        return OpenResources(self._registered.resources)

    def injected(self) -> Mapping[str, Sequence[Injected]]:
        """Return which resources the steps take that this host performs. Raises BadResource."""
        return self._registered.injected(self.queues())

    def limits(self) -> Mapping[str, DeclaredLimit]:
        if self.model_names():
            self.models()  # those of models in pyproject.toml are read with them
        return self._registered.limits

    def models(self) -> ModelAliases:
        return self._registered.models.aliases

    def model_names(self) -> list[str]:
        return self._registered.models.names()

    def mcp_servers(self) -> Mapping[str, McpServer]:
        return self._registered.models.servers.by_name

    def step(self, name: str) -> StepBody | None:
        return self._registered.find_body(name)

    def program(self, workflow: str, version: str) -> AnyProgram | None:
        key = (workflow, version)
        found: AnyProgram | None = self._registered.programs.get(key) or self._programs.get(key)
        if found is None:
            known = self._registered.known(workflow, version)
            if isinstance(known, Graph):
                found = self._programs[key] = self._graph_program(known.loaded.graph, version)
            elif isinstance(known, Goal) or key == (GOAL, "1"):
                found = self._goal_program(workflow, known)
            elif key == BULK:
                found = self._bulk
            elif key == AGENT:
                found = self._agents()
        return found

    def _agents(self) -> AgentProgram:
        from weft.authoring.agents.workflow import agent_program  # noqa: PLC0415 - only hosts with such runs need it

        return agent_program(self._registered, THE_CONTEXT)

    def _graph_program(self, graph: GraphModel, version: str, ways: Ways | None = None) -> GraphProgram:
        return GraphProgram(graph, version, self, lambda other: graph_program(self.program(graph.name, other)), ways)

    def _goal_program(self, name: str, known: Runnable[Any] | None) -> GoalProgram:
        found = self._goals.get(name)
        if found is None or found[0] is not known:
            goal = known if isinstance(known, Goal) else None
            goals, review = goal.declared if goal is not None else ((), ())
            found = self._goals[name] = (goal, GoalProgram(name, self, goals, review=review))
        return found[1]

    def programs(self) -> list[tuple[str, str]]:
        graphs = [(graph.name, graph.version) for graph in self._registered.graphs()]
        goals = [(GOAL, "1"), *((goal.name, goal.version) for goal in self._registered.goals())]
        versions = dict.fromkeys([*self._registered.workflow_versions(), *graphs, *goals, *self._programs])
        schedules = [(WORKFLOW, STORED), *((WORKFLOW, declared_version(name)) for name in self.schedules())]
        deliveries = [(HOOK, version) for version in self._registered.hooks.graphs]
        names = ((name, "") for name, _ in versions if name != HOOK)
        return list(dict.fromkeys([*versions, *names, *schedules, *deliveries, BULK, AGENT]))

    def start_rule(self, workflow: str, version: str) -> DeclaredRule | None:
        return self._registered.start_rules.get((workflow, version))

    def start_rules(self) -> Mapping[str, StartRule]:
        newest = ((name, self._registered.newest(name)) for name, _ in self._registered.start_rules)
        found = {name: self.start_rule(name, known.version) for name, known in newest if known is not None}
        return {name: declared.rule for name, declared in found.items() if declared is not None}

    def schedules(self) -> Mapping[str, ScheduleSpec]:
        return self._registered.schedules()

    def hooks(self) -> HookTable:
        return self._registered.hooks.table

    def policy(self) -> PolicyRules | None:
        return self._registered.policy.read()

    def resolve(self, workflow: str, version: str) -> Callee | None:
        known = self._registered.known(workflow, version) if version else self._registered.newest(workflow)
        if known is not None:
            rule = self._registered.start_rules.get((workflow, known.version))
            return Callee(known.version, known.style, known.timeout_ms, rule)
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

    def step_arguments(self, step: str) -> StepArguments | None:
        found = self._registered.find_step(step)
        return found.signature.arguments() if found is not None else None

    def described_steps(self) -> dict[str, StepArguments]:
        """Return what the steps take that are functions, by name."""
        found = {name: self.step_arguments(name) for name in self.steps()}
        return {name: arguments for name, arguments in found.items() if arguments is not None}

    def required_names(self) -> dict[str, list[str]]:
        """Return the arguments that all versions of a code workflow need."""
        registered = self._registered
        needed: dict[str, set[str]] = {}
        for name, version in registered.workflow_versions():
            known = registered.known(name, version)
            if isinstance(known, Workflow):
                names = {one.name for one in known.signature.parameters if one.required}
                needed[name] = needed.get(name, names) & names
        return {name: sorted(names) for name, names in needed.items()}

    def input_types(self) -> dict[str, dict[str, list[str]]]:
        """Return the JSON types that the arguments of workflows may have, in any of their versions."""
        registered = self._registered
        schemas: dict[str, list[Mapping[str, Any]]] = {}
        for name, version in registered.workflow_versions():
            known = registered.known(name, version)
            if isinstance(known, Workflow):
                schemas.setdefault(name, []).append(known.signature.schema())
        for graph in registered.graphs():
            schemas[graph.name] = [graph.loaded.graph.input or {}]
        return {name: either_type(found) for name, found in schemas.items()}

    def startable(self) -> list[str]:
        return self._registered.runnable_names()

    def definitions(self, now: Millis) -> Sequence[Definition]:
        at = (self._registered.revision, len(self._registered.hooks.graphs))
        if at == self._defined_at:
            return self._defined
        for graph in (*self._registered.graphs(), *self._registered.hooks.graphs.values()):
            if (graph.name, graph.version) not in self._definitions:
                loaded = graph.loaded
                definition = graph_definition(StoredGraph(loaded.source, loaded.graph, loaded.text), now=now)
                self._definitions[graph.name, graph.version] = definition
        self._defined, self._defined_at = tuple(self._definitions.values()), at
        return self._defined

    def document_context(self) -> DocumentContext:
        return self._registered.document_context()

    def learn(self, definition: Definition, read: GraphProgram | None = None) -> None:
        key = (definition.name, definition.version)
        # A version is a hash of its content, so a graph that the app has registered need not be read.
        if definition.name == CATALOGUE or key in self._programs or self._registered.known(*key) is not None:
            return
        graph = read.graph if read is not None else read_graph(definition).graph
        if definition.name == HOOK and unknown_work(graph, self._registered):
            return  # the hook is gone: its deliveries wait until a host has its step again
        self._programs[key] = self._graph_program(graph, definition.version, read.ways if read is not None else None)

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

    def learning(self, steps: Mapping[str, StepDef]) -> Learning:
        return self._registered.learning(steps)

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

    def agent_call(self, graph: GraphModel, order: AgentOrder) -> AgentCall:
        from weft.authoring.agents.documents import agent_call  # noqa: PLC0415 - only graphs with agents need it

        return agent_call(cast("AgentGroup", self._registered), graph, order)

    def refuse_unknown_work(self, workflow: str, version: str) -> None:
        known = self._registered.known(workflow, version)
        if isinstance(known, Graph):
            known.refuse_unknown(self._registered)

    def is_agent(self, workflow: str) -> bool:
        known = self._registered.newest(workflow)
        return workflow == AGENT[0] or (isinstance(known, Workflow) and known.is_agent)

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
