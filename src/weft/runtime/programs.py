"""The programs that a host runs, by name and version, and the machines of their runs.

Code exists only in the process. A graph is data: every version that was ever hosted is kept in the store, so that a run
continues with the version it began with, even if the document has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from weft.core import values
from weft.core.budgets import BudgetLimits
from weft.core.code.machine import CodeMachine
from weft.core.events import ABSENT, DEFAULT_POLICY, Policy, Style, UndoPlan
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.definitions import StepDef, StepWay
from weft.core.goal.machine import GoalMachine
from weft.core.goal.plan import GoalPlan, check_complete, encode_plan
from weft.core.goal.planner import make_plan
from weft.core.goal.scripts import ScriptReader as GoalReader
from weft.core.goal.state import GoalState
from weft.core.goal.state import restore_state as goal_state
from weft.core.goal.types import Type
from weft.core.graph import model
from weft.core.graph.defaults import has_defaults, with_defaults
from weft.core.graph.hosted import AgentCall, AgentOrder, NodeTask
from weft.core.graph.machine import GraphMachine, restore_state
from weft.core.graph.model import GraphModel, Node, RetryRule, StepWork
from weft.core.graph.route import ExpressionReader
from weft.core.graph.tokens import GraphState
from weft.core.graph.ways import Ways
from weft.core.ids import EntryId, Millis
from weft.core.machine import Machine
from weft.core.run.env import MissingInputs
from weft.core.schedule.machine import ScheduleMachine
from weft.core.schedule.state import ScheduleState
from weft.core.schedule.state import restore_state as schedule_state
from weft.errors import BadValue, Conflict, Corrupt, Refused, UnknownWorkflow, UsageError
from weft.ports.definitions import Definition, Definitions, Origin
from weft.runtime.cron_calendar import CALENDAR
from weft.runtime.goal_language import GOAL_LANGUAGE
from weft.runtime.input_differences import argument_differences, fact_differences
from weft.runtime.language import LANGUAGE
from weft.runtime.run.driver import CodeDriver, Program
from weft.runtime.run.driver_actor import DriverActor
from weft.runtime.schema_check import check_schema, schema_findings
from weft.runtime.typed_words import Read, parse_word, reader_for_schema, reader_for_type


class ProgramRegistry(Protocol):
    """The steps and workflows of a host that a program can look up."""

    @property
    def revision(self) -> int:
        """A number that changes whenever something about the steps changes."""
        ...

    def step_policy(self, step: str) -> Policy | None: ...

    def step_undo(self, step: str) -> UndoPlan | None: ...

    def step_parameters(self, step: str) -> list[str] | None: ...

    def callee(self, workflow: str) -> tuple[str, Style] | None:
        """Return the version of a workflow that would be started now, and its style."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan: ...

    def fact_type(self, fact: str) -> Type: ...

    def agent_call(self, graph: GraphModel, order: AgentOrder) -> AgentCall:
        """Return the child run of an agent node. Raises UsageError, BadValue, NotAllowed."""
        ...

    def refuse_unknown_work(self, workflow: str, version: str) -> None:
        """Refuse a registered graph that names steps or workflows nobody here has. Raises BadGraph."""
        ...


class EmptyProgramRegistry:
    """An empty registry, sufficient for reading runs."""

    revision = 0

    def step_policy(self, step: str) -> Policy | None:
        return None

    def step_undo(self, step: str) -> UndoPlan | None:
        return None

    def step_parameters(self, step: str) -> list[str] | None:
        return None

    def callee(self, workflow: str) -> tuple[str, Style] | None:
        return None

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        return make_plan(Catalogue(), goals, given)

    def fact_type(self, fact: str) -> Type:
        return None

    def agent_call(self, graph: GraphModel, order: AgentOrder) -> AgentCall:
        raise UsageError(f"No agent can be run here for {graph.name}.{order.node}.")

    def refuse_unknown_work(self, workflow: str, version: str) -> None:
        return None


class GraphProgram:
    """A compiled graph, with the steps of a host."""

    review: tuple[str, ...] = ()
    """The document says who must agree to patches."""
    budget: BudgetLimits | None = None

    def __init__(
        self,
        graph: GraphModel,
        version: str,
        registry: ProgramRegistry,
        find: Callable[[str], GraphProgram | None] = lambda _: None,
        ways: Ways | None = None,
    ) -> None:
        """``find`` returns another version of the same graph, if it is in memory. ``ways``: if they are known."""
        self._find = find
        self.name = graph.name
        self.version = version
        self.graph = graph
        self.ways = ways or Ways(graph)
        self.reader: ExpressionReader = LANGUAGE
        self._registry = registry
        self._revision = registry.revision
        self._tasks: dict[str, NodeTask] = {}
        """The tasks of nodes, worked out from the steps of this revision."""

    def beside(self, find: Callable[[str], GraphProgram | None]) -> GraphProgram:
        """Return the same program, with other versions beside it."""
        return GraphProgram(self.graph, self.version, self._registry, find, self.ways)

    def at(self, version: str) -> GraphProgram:
        """Return the program of another version of this graph. Raises MissingInputs."""
        found = self if version == self.version else self._find(version)
        if found is None:
            raise MissingInputs(versions=[version])
        return found

    def read(self, name: str, text: str) -> Any:
        """Convert a word that was typed for the graph's input."""
        return reader_for_schema(self.graph.input)(name, text)

    def check(self, given: Mapping[str, Any] | bytes) -> bytes:
        """Return the input of a new run as JSON. Raises BadValue, or BadGraph if nobody here can run the graph."""
        raw = given if isinstance(given, bytes) else check_graph_input(self.graph, given)
        self._registry.refuse_unknown_work(self.name, self.version)
        return raw

    def defaults(self, given: bytes | None) -> bytes:
        """Return no defaults: the document has its own."""
        return b""

    def task(self, node: str) -> NodeTask:
        """Return the task of a node: its step's own policy with the document's changes, its undo and parameters."""
        if self._revision != self._registry.revision:
            self._revision = self._registry.revision
            self._tasks.clear()
        known = self._tasks.get(node)
        if known is None:
            known = self._tasks[node] = self._make_task(self.graph.nodes[node])
        return known

    def _make_task(self, node: Node) -> NodeTask:
        if not isinstance(node.work, StepWork):
            return NodeTask(self._with_changes(node, DEFAULT_POLICY), self._make_undo_plan(node))
        step = node.work.step
        policy = self._with_changes(node, self._registry.step_policy(step) or DEFAULT_POLICY)
        undo = self._make_undo_plan(node) if node.undo is not None else self._registry.step_undo(step)
        return NodeTask(policy, undo, self._registry.step_parameters(step))

    def _with_changes(self, node: Node, base: Policy) -> Policy:
        changes = _retry_changes(node.retry, base)
        if node.timeout_ms:
            changes["timeout_ms"] = node.timeout_ms
        if node.queue:
            changes["queue"] = node.queue
        if node.limits.time_ms:
            changes["deadline_ms"] = node.limits.time_ms
        return msgspec.structs.replace(base, **changes) if changes else base

    def _make_undo_plan(self, node: Node) -> UndoPlan | None:
        if node.undo is None:
            return None
        base = self._registry.step_policy(node.undo.step) or DEFAULT_POLICY
        changes = _retry_changes(node.undo.retry, base)
        if node.undo.timeout_ms:
            changes["timeout_ms"] = node.undo.timeout_ms
        return UndoPlan(
            step=node.undo.step, takes=self._undo_takes(node), policy=msgspec.structs.replace(base, **changes)
        )

    def _undo_takes(self, node: Node) -> list[str] | None:
        """Return the arguments of an undo if the document gives none: its parameters, from the input and ``result``."""
        assert node.undo is not None
        if node.undo.input is not None:
            return None
        takes = self._registry.step_parameters(node.undo.step)
        return takes if takes is not None else []

    def version_of(self, workflow: str) -> tuple[str, Style]:
        return _find_callee(self._registry, workflow)

    def agent_call(self, order: AgentOrder) -> AgentCall:
        return self._registry.agent_call(self.graph, order)

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> Raw:
        plan = self._registry.plan(goals, given)
        check_complete(plan)
        return Raw(encode_plan(plan))


def check_graph_input(graph: GraphModel, given: Mapping[str, Any]) -> bytes:
    """Return the input of a graph as JSON, checked against its schema. Raises BadValue."""
    raw = values.encode(dict(given), what=f"{graph.name} got")
    schema = graph.input
    if schema is None:
        return raw
    filled = values.encode(with_defaults(schema, dict(given))) if has_defaults(schema) else raw
    problem = check_schema(schema, filled)
    if problem is not None:
        fields = ", ".join(schema.get("properties") or {})
        hint = f"It takes {fields}. Nothing was started." if fields else "Nothing was started."
        findings = schema_findings(schema, filled)
        message = f"The input of {graph.name} is not valid: {problem}."
        raise BadValue(message, hint=hint, code="value.wrong_type", findings=findings)
    return raw


class InputRules(msgspec.Struct, frozen=True):
    """How arguments are read and checked that change the input of a run, as far as this is known here."""

    read: Read
    """Converts a word that was typed."""
    check: Callable[[Mapping[str, Any]], object] | None = None
    """Checks the whole input, and raises BadValue; None if the program is not known, or decides it itself."""
    has_facts: bool = False
    """Whether arguments are given facts."""


def input_rules(machine: Machine, program: AnyProgram | None) -> InputRules:
    """Return the rules for the input of a run. ``program`` is that of its workflow, if it is here."""
    if isinstance(machine, GraphMachine):
        graph = machine.style.graph
        return InputRules(reader_for_schema(graph.input), partial(check_graph_input, graph))
    read: Read = program.read if program is not None else lambda _, text: parse_word(text)
    if isinstance(machine, GoalMachine):
        return InputRules(read, has_facts=True)
    return InputRules(read, program.check if program is not None else None)


def _retry_changes(retry: RetryRule, base: Policy) -> dict[str, Any]:
    rules = {
        "attempts_max": retry.attempts,
        "backoff": retry.backoff,
        "delay_ms": retry.delay_ms,
        "delay_ms_max": retry.delay_ms_max,
    }
    changes = {name: value for name, value in rules.items() if value is not None}
    if retry.delay_ms is not None and retry.delay_ms_max is None:
        changes["delay_ms_max"] = max(retry.delay_ms, base.delay_ms_max)
    return changes


class GoalProgram:
    """The program of all goal runs. Each run has its own plan."""

    def __init__(
        self, name: str, registry: ProgramRegistry, goals: Sequence[str] = (), *, review: tuple[str, ...] = ()
    ) -> None:
        """``review``: who must agree to every patch of a run."""
        self.name = name
        self.review = review
        self.budget: BudgetLimits | None = None
        self.version = "1"
        self.goals = tuple(goals)
        self.reader: GoalReader = GOAL_LANGUAGE
        self._registry = registry

    def read(self, name: str, text: str) -> Any:
        """Convert a word that was typed for a fact."""
        return reader_for_type(self._registry.fact_type(name))(text)

    def check(self, given: Mapping[str, Any] | bytes) -> bytes:
        """Return the facts of a new run as JSON. Raises BadValue."""
        return given if isinstance(given, bytes) else values.encode(dict(given), what=f"{self.name} got")

    def defaults(self, given: bytes | None) -> bytes:
        """Return no defaults: facts that are missing are planned for."""
        return b""

    def version_of(self, workflow: str) -> tuple[str, Style]:
        return _find_callee(self._registry, workflow)

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan | None:
        wanted = goals or self.goals
        return self._registry.plan(wanted, given) if wanted else None

    def body(self, definition: StepDef) -> str:
        """Return the name of the registered step that performs a definition, else the id of the definition."""
        return definition.way.step if isinstance(definition.way, StepWay) else definition.id


def _find_callee(registry: ProgramRegistry, workflow: str) -> tuple[str, Style]:
    callee = registry.callee(workflow)
    if callee is None:
        raise UnknownWorkflow(
            f'There is no workflow "{workflow}" on this host.', hint="Register it here, or on another host."
        )
    return callee


AnyProgram = Program | GraphProgram | GoalProgram
Programs = Callable[[str, str], AnyProgram | None]
"""Returns the program of a workflow and version, if there is one."""


def new_machine(style: str, program: AnyProgram | None, uid: str, snapshot: bytes | None = None) -> Machine:
    """Make the machine of one run, empty or from a snapshot. Raises UnknownWorkflow."""
    if style in ("code", ""):
        # A run whose style is not known yet has no events.
        return CodeMachine.restore(snapshot) if snapshot is not None else CodeMachine.fresh(uid)
    if style == "goal":
        known = program if isinstance(program, GoalProgram) else GoalProgram("", EmptyProgramRegistry())
        return GoalMachine(known, goal_state(snapshot) if snapshot is not None else GoalState(uid=uid))
    if style == "schedule":
        return ScheduleMachine(CALENDAR, schedule_state(snapshot) if snapshot is not None else ScheduleState(uid=uid))
    if style != "graph":
        raise Corrupt(f"The style {style[:60]!r} of the run is not known to this version of Weft.")
    if not isinstance(program, GraphProgram):
        raise UnknownWorkflow(f"The definition of this {style} run is not in the store.")
    if snapshot is None:
        return GraphMachine(program, GraphState(uid=uid))
    state = restore_state(snapshot)
    return GraphMachine(program.at(state.version), state)


# --- what depends on the style ------------------------------------------------------------------------------------


def needs_definition(style: str) -> bool:
    """Return whether runs of this style need a definition from the store."""
    return style == "graph"


def has_versions(machine: Machine) -> bool:
    """Return whether the versions of the run's program are in the store, so that a log needs those that it names."""
    return isinstance(machine, GraphMachine)


def is_published(style: str) -> bool:
    """Return whether other hosts find the programs of this style in the store. They do not find code there."""
    return style != "code"


def is_graph(definition: Definition) -> bool:
    """Return whether a definition in the store is a graph."""
    return definition.style == "graph"


def input_differences(style: str) -> Callable[[bytes, bytes], dict[str, tuple[Any, Any]]]:
    """Return the function that compares the inputs of two starts with the same id."""
    return fact_differences if style == "goal" else argument_differences


def start_plan(program: AnyProgram, given: bytes, goals: Sequence[str]) -> Raw:
    """Make the plan that a run of goals follows; empty for other runs. Raises BadPlan, UnknownStep."""
    plan = program.plan(goals, list(values.decode(given))) if isinstance(program, GoalProgram) else None
    if plan is None:
        return ABSENT
    check_complete(plan)
    return Raw(encode_plan(plan))


def graph_program(program: AnyProgram | None) -> GraphProgram | None:
    """Return the program if it is a graph, else None."""
    return program if isinstance(program, GraphProgram) else None


def new_driver(machine: Machine, find: Programs, outside: DriverActor) -> CodeDriver | None:
    """Make the driver for the code of a run; None if the run has no code, or ``find`` does not find its program."""
    if not isinstance(machine, CodeMachine):
        return None
    program = find(machine.state.workflow, machine.state.version)
    if program is None or isinstance(program, (GraphProgram, GoalProgram)):
        return None
    return CodeDriver(machine, program, outside)


def code_program(program: AnyProgram | None) -> Program | None:
    """Return the program if it is code, else None."""
    return None if isinstance(program, (GraphProgram, GoalProgram)) else program


def code_machine(machine: Machine) -> CodeMachine:
    """Return the machine of a run that has code. Raises Refused if the run has none."""
    if not isinstance(machine, CodeMachine):
        raise Refused(f"{machine.state.run_id} is a {machine.style.name} run: it has no code to replay.")
    return machine


def has_dead_letters(machine: Machine) -> bool:
    """Return whether a run has dead letters."""
    return isinstance(machine.state, GraphState) and bool(machine.state.letters)


def planned_step(machine: Machine, task: EntryId) -> StepDef | None:
    """Return the step of a plan that a task performs, if there is one."""
    return machine.definition(task) if isinstance(machine, GoalMachine) else None


def undone_step(machine: Machine, task: EntryId) -> StepDef | None:
    """Return the step of a plan that a task undoes, if there is one."""
    return machine.undone(task) if isinstance(machine, GoalMachine) else None


class Machines:
    """Makes the machines of runs, with the programs of one host."""

    def __init__(self, program: Programs) -> None:
        self._program = program

    def new(self, style: str, workflow: str, version: str, uid: str, snapshot: bytes | None = None) -> Machine:
        """Make the machine of a run, empty or from a snapshot. Raises UnknownWorkflow."""
        program = None if style == "code" else self._program(workflow, version)
        return new_machine(style, program, uid, snapshot)


# --- definitions in the store ------------------------------------------------------------------------------------


class StoredGraph(msgspec.Struct, frozen=True, omit_defaults=True):
    """A version of a graph: its document as data and as its author wrote it, and the compiled graph.

    A version that was made by a patch has the version it came from, and the operations that made it.
    """

    source: dict[str, Any]
    graph: GraphModel
    text: str = ""
    base: str = ""
    ops: list[Any] = []


_stored = msgspec.json.Decoder(StoredGraph)
_encode = msgspec.json.Encoder().encode


def graph_version(hash: str) -> str:
    """Return the version of a graph, which is a prefix of its content hash."""
    return hash[:16]


def graph_definition(stored: StoredGraph, *, now: Millis, origin: Origin = "hosted") -> Definition:
    """Make the definition of a graph for the store."""
    return Definition(
        name=stored.graph.name,
        version=graph_version(model.content_hash(stored.graph)),
        style="graph",
        # Keep the author's order of fields: outputs have their fields in this order.
        body=_encode(stored),
        created_at=now,
        origin=origin,
    )


def read_graph(definition: Definition) -> StoredGraph:
    """Decode a definition made by ``graph_definition``. Raises Corrupt."""
    try:
        return _stored.decode(definition.body)
    except msgspec.DecodeError as error:
        raise Corrupt(f"The definition of {definition.name} {definition.version} cannot be read: {error}.") from error


async def store_definition(definitions: Definitions, definition: Definition) -> None:
    """Store a version. If an equal graph with another source is stored, that one stays."""
    try:
        if await definitions.put(definition):
            return
    except Conflict:
        pass
    await definitions.promote(definition.name, definition.version, definition.origin, at=definition.created_at)
