"""The steps, workflows, graphs and goals that a group or an app has registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from weft.agents.budget import Budget, limits_of
from weft.authoring.app_policy import DeclaredPolicy
from weft.authoring.change_rules import ChangeRules, read_review
from weft.authoring.context import THE_CONTEXT, Context
from weft.authoring.declared_models import DeclaredModels
from weft.authoring.function_places import file_of_function, function_name, place_of_function
from weft.authoring.goals import Goal, goal_names
from weft.authoring.graphs import Graph, here_or_beside
from weft.authoring.hooks import DeclaredHooks
from weft.authoring.limits import Limit, check_declared_limit
from weft.authoring.needs import When
from weft.authoring.notebooks import Redefinitions, in_notebook
from weft.authoring.policies import Duration, Retry, check_body, policy_of, reuse_ms
from weft.authoring.resources import ResourceTable, refuse_goal_input, refuse_in_workflow
from weft.authoring.runnable import Invocation, Runnable
from weft.authoring.start_rules import StartOption, read_rule
from weft.authoring.step_definitions import graph_step_definition, step_definition, workflow_definition
from weft.authoring.steps import Planning, Step
from weft.authoring.workflows import Workflow, WorkflowProgram, perform_workflow
from weft.core.code.locations import check_name
from weft.core.durations import duration_ms
from weft.core.events import Effect, Policy, ScheduleSpec, UndoPlan
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.definitions import StepDef, StepWay
from weft.core.goal.plan import GoalPlan as CorePlan
from weft.core.goal.planner import make_plan
from weft.core.ids import GOAL
from weft.errors import BadPlan, NameTaken, NotAsync, NotRunning, UnknownWorkflow, UsageError, WeftError
from weft.ports.tasks import STEP_LIMIT, WORKFLOW_LIMIT
from weft.runtime.catalogue_log import Learning, merge_stored_steps
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.runtime.hooks import WORKFLOW as HOOK
from weft.runtime.key_limits import DeclaredLimit
from weft.runtime.orders import unknown_workflow
from weft.runtime.schedule_form import ScheduleForm, make_schedule_spec
from weft.runtime.service import RunService
from weft.runtime.start_rules import DeclaredRule
from weft.runtime.version_refs import check_workflow_name
from weft.steps.catalogued import argument_names, why_planned
from weft.steps.node_types import node_types
from weft.steps.python import PythonStep
from weft.steps.resources import HostResources, ResourceStep
from weft.steps.signature import Injected, Signature
from weft.steps.task import StepBody

if TYPE_CHECKING:
    from weft.goals import LoadedSteps
    from weft.graphs.load import DocumentContext

RENAME = "Rename one of them: a run finds its workflow by name."


class OwningApp(Protocol):
    """What registrations use of the app that they belong to."""

    @property
    def service(self) -> RunService:
        """The run service. Raises NotRunning."""
        ...

    def blobs(self) -> Callable[[str], bytes | None] | None:
        """Return a function that reads the blobs that a document refers to."""
        ...

    def open_resources(self) -> HostResources | None:
        """Return the resources that are open, if this process hosts the app."""
        ...

    async def run_and_wait(self, invocation: Invocation) -> Any:
        """Start a run and return its result."""
        ...


class Registrations:
    """Everything that one group or app has registered. ``prefix`` is prepended to names."""

    def __init__(self, prefix: str = "", app: OwningApp | None = None) -> None:
        self._prefix = prefix
        self._app = app
        self._steps: dict[str, Step[Any, Any]] = {}
        self.revision = 0  # another one whenever steps or graphs change
        self._workflows: dict[tuple[str, str], Workflow[Any, Any]] = {}
        self._newest: dict[str, Workflow[Any, Any]] = {}
        """The version of each workflow that was registered last."""
        self.programs: dict[tuple[str, str], WorkflowProgram] = {}
        self.start_rules: dict[tuple[str, str], DeclaredRule] = {}
        """The rules about starts, by workflow and version."""
        self._graphs: dict[str, Graph] = {}
        self._goals: dict[str, Goal] = {}
        self._schedules: dict[str, ScheduleSpec] = {}
        self.hooks = DeclaredHooks()
        self.policy = DeclaredPolicy()
        self.limits: dict[str, DeclaredLimit] = {}
        """The limits of steps and workflows per key, by the name of the limit."""
        self.planner = Catalogue()
        """The steps that goals are planned with."""
        self._documents: list[LoadedSteps] = []
        self.adopted: dict[str, StepDef] = {}
        """The steps in ``planner`` that were read from the store."""
        self.resources = ResourceTable()
        self.models = DeclaredModels(self.limits)
        self._parent: Registrations | None = None
        self.redefinitions = Redefinitions()

    # --- registering ----------------------------------------------------------------------------------------------

    def add_step(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None,
        retries: int | Retry = 3,
        timeout: Duration | None = None,
        queue: str = "default",
        limit: Limit | None = None,
        raises: Sequence[type[Exception]] = (),
        effect: Effect = "idempotent",
        cache: Duration | bool | None = None,
        run_in: Literal["thread", "process"] = "thread",
        gives: str | Sequence[str] = (),
        when: When | None = None,
        width: int = 1,
        labels: Mapping[str, str] | None = None,
    ) -> Step[Any, Any]:
        """Register a function as a step, with its policies. Raises NameTaken, UsageError, BadValue, BadStep."""
        full = check_name(self._prefix + (name or function_name(fn)))
        self._refuse_taken(full, fn, "step")
        check_body(fn, raises=raises, run_in=run_in, width=width)
        signature = Signature.of(fn)
        refuse_goal_input(full, signature.injected)
        policy = policy_of(retries=retries, timeout=timeout, effect=effect, queue=queue)
        kind = ResourceStep if signature.injected else PythonStep
        body = kind(full, fn, signature, raises=tuple(raises), run_in=run_in)
        declared = check_declared_limit(full, limit, signature)
        planning = Planning(
            gives if isinstance(gives, str) else tuple(gives), when, width, reuse_ms(cache), labels or {}
        )
        step: Step[Any, Any] = Step(self, body, signature, policy, tuple(raises), planning=planning)
        step.limit = declared
        self._plan_with(step)
        self._keep_step(step)
        if self._parent is not None:
            self._parent.adopt_step(step)
        return step

    def _keep_step(self, step: Step[Any, Any]) -> None:
        self._steps[step.name] = step
        self._keep_limit(STEP_LIMIT + step.name, step.limit)
        self.revision += 1

    def _keep_limit(self, name: str, limit: DeclaredLimit | None) -> None:
        if limit is not None:
            self.limits[name] = limit
        else:
            self.limits.pop(name, None)

    def add_workflow(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        version: str = "1",
        timeout: Duration | None = None,
        gives: str | Sequence[str] = (),
        changes: ChangeRules | None = None,
        limit: Limit | None = None,
        mcp: bool = False,
        budget: Budget | None = None,
        **start_options: StartOption | None,
    ) -> Workflow[Any, Any]:
        """Register an async function as a workflow. Raises NotAsync, NameTaken, UsageError."""
        full = check_workflow_name(self._prefix + (name or function_name(fn)))
        if not inspect.iscoroutinefunction(fn):
            raise NotAsync(
                f"Workflow {full} must be `async def`: its waits are awaited.",
                hint=f"Steps may be plain `def`.   [{place_of_function(fn)}]",
            )
        self._refuse_taken(full, fn, "workflow", version)
        signature = Signature.of(fn, context_type=Context)
        refuse_in_workflow(full, signature.injected)
        declared = check_declared_limit(full, limit, signature)
        workflow: Workflow[Any, Any] = Workflow(
            self,
            full,
            fn,
            signature,
            version=version,
            timeout_ms=duration_ms(timeout) if timeout is not None else 0,
            gives=gives if isinstance(gives, str) else tuple(gives),
            review=read_review(full, changes),
            rule=read_rule(full, signature, start_options) if start_options else None,
            budget=limits_of(budget),
        )
        workflow.limit = declared
        workflow.mcp = mcp
        self._plan_with(workflow)
        self._keep_workflow(workflow)
        return workflow

    def _keep_workflow(self, workflow: Workflow[Any, Any]) -> None:
        key = (workflow.name, workflow.version)
        self._workflows[key] = self._newest[workflow.name] = workflow
        self.programs[key] = workflow.program(THE_CONTEXT)
        if workflow.rule is not None:
            self.start_rules[key] = workflow.rule
        self._keep_limit(WORKFLOW_LIMIT + workflow.name, workflow.limit)
        if self._parent is not None:
            self._parent._keep_workflow(workflow)  # noqa: SLF001

    def add_graph(
        self, source: str | Path | Mapping[str, Any] | Graph, gives: str | Sequence[str], beside: str
    ) -> Graph:
        """Register a graph. A file is looked for here and next to ``beside``. Raises BadGraph, NameTaken."""
        graph = Graph.of(source, self.document_context(), beside=beside)
        graph.register(self, self.document_context(), (gives,) if isinstance(gives, str) else tuple(gives))
        check_workflow_name(graph.name)
        self._plan_with(graph)
        self._keep_graph(graph)
        return graph

    def document_context(self) -> DocumentContext:
        """Return what graph documents may use: registered node types, and the blobs of the store."""
        from weft.graphs.load import DocumentContext  # noqa: PLC0415 - slow to import, and only needed for graphs

        types = {name: found.schema() for name, found in node_types().items()}
        return DocumentContext(types=types, resolve=self.root().blobs())

    def blobs(self) -> Callable[[str], bytes | None] | None:
        """Return a function that reads the blobs that a document refers to; None for a group, which has no store."""
        return self._app.blobs() if self._app is not None else None

    def _keep_graph(self, graph: Graph) -> None:
        known = self._graphs.get(graph.name)
        taken = graph.name in self._steps or graph.name in self._newest
        if known is not None and known.version != graph.version and not taken and in_notebook():
            self.root().redefinitions.say(graph.name)
        elif taken or (known is not None and known is not graph and known.version != graph.version):
            other = "A step" if graph.name in self._steps else "Another workflow"
            raise NameTaken(f'{other} is already called "{graph.name}".', hint=RENAME)
        self._graphs[graph.name] = graph
        self.revision += 1
        if self._parent is not None:
            self._parent._keep_graph(graph)  # noqa: SLF001

    def add_document(self, source: str | Path | Mapping[str, Any], beside: str) -> list[str]:
        """Register the steps of a document. Returns their names. Raises BadStep, NameTaken, NotFound."""
        from weft.goals import load_steps  # noqa: PLC0415 - slow to import, and only needed for documents

        document = source if isinstance(source, Mapping) else here_or_beside(source, beside)
        loaded = load_steps(document, GOAL_LANGUAGES, self)
        self._keep_document(loaded)
        return [step.id for step in loaded.steps]

    def _keep_document(self, loaded: LoadedSteps) -> None:
        from weft.goals import admit_steps  # noqa: PLC0415 - slow to import, and only needed for documents

        for step in loaded.steps:
            self._refuse_other_in_store(step)
        for event in admit_steps(self.planner, loaded, GOAL_LANGUAGES):
            self.planner.evolve(event)
        self._documents.append(loaded)
        self.revision += 1
        if self._parent is not None:
            self._parent._keep_document(loaded)  # noqa: SLF001

    def adopt_step(self, step: Step[Any, Any]) -> None:
        self._refuse_taken(step.name, step.fn, "step")
        self._plan_with(step)
        self._keep_step(step)
        if self._parent is not None:
            self._parent.adopt_step(step)

    def adopt_workflow(self, workflow: Workflow[Any, Any]) -> None:
        """Register a workflow that exists already. Raises NameTaken."""
        self._refuse_taken(workflow.name, workflow.fn, "workflow", workflow.version)
        self._plan_with(workflow)
        self._keep_workflow(workflow)

    def include(self, other: Registrations) -> None:
        """Include everything that another group has registered or will register. Raises NameTaken, UsageError."""
        if other._parent is not None:
            raise UsageError("This group is already included.", hint="A group can be included only once.")
        for step in other._steps.values():
            self.adopt_step(step)
        for workflow in other._workflows.values():
            self.adopt_workflow(workflow)
        for graph in other._graphs.values():
            self._plan_with(graph)
            self._keep_graph(graph)
        for document in other._documents:
            self._keep_document(document)
        for goal in other._goals.values():
            self._keep_goal(goal)
        for name, spec in other._schedules.items():
            self._keep_schedule(name, spec)
        self.hooks.include(other.hooks)
        self.resources.include(other.resources)
        self.models.include(other.models)
        other._parent = self

    def _refuse_taken(self, name: str, fn: Callable[..., Any], kind: str, version: str = "") -> None:
        step = self._steps.get(name)
        other: Any = step.fn if step is not None else None
        if other is None:
            found = [w for (n, v), w in self._workflows.items() if n == name and (kind == "step" or v == version)]
            other = found[0].fn if found else None
        if name in self._graphs:
            raise NameTaken(f'A graph is already called "{name}".', hint=RENAME)
        if other is None or other is fn:
            return
        if self.root().redefinitions.allows(name, other, fn):
            self._forget(name, but=kind)
            return
        kinds = f"Two {kind}s are" if (step is not None) == (kind == "step") else "A step and a workflow are both"
        raise NameTaken(
            f'{kinds} called "{name}" ({place_of_function(other)}, {place_of_function(fn)}).',
            hint="Names identify recorded results. "
            f'Rename one, or @app.{kind}(name="{PurePath(file_of_function(fn)).stem}.{name}").',
        )

    def _forget(self, name: str, *, but: str) -> None:
        """Forget a step or workflow that a notebook defines again as the other of the two."""
        if but == "workflow":
            self._steps.pop(name, None)
            return
        self._newest.pop(name, None)
        for key in [key for key in self._workflows if key[0] == name]:
            del self._workflows[key], self.programs[key]

    # --- schedules ------------------------------------------------------------------------------------------------

    def prefixed(self, name: str) -> str:
        """Return a name with the prefix of this group."""
        return self._prefix + name

    def add_schedule(self, form: ScheduleForm) -> None:
        """Declare a schedule. Raises BadSchedule, NameTaken."""
        self._keep_schedule(form.name, make_schedule_spec(form))

    def _keep_schedule(self, name: str, spec: ScheduleSpec) -> None:
        if self._schedules.setdefault(name, spec) != spec:
            raise NameTaken(
                f'Two schedules are called "{name}".', hint="Rename one: its name is part of its runs' ids."
            )
        if self._parent is not None:
            self._parent._keep_schedule(name, spec)  # noqa: SLF001

    def schedules(self) -> Mapping[str, ScheduleSpec]:
        """Return the schedules that are declared, by name."""
        return self._schedules

    # --- goals ----------------------------------------------------------------------------------------------------

    def add_goal(
        self, name: str, goals: Sequence[str | Step[..., Any] | Runnable[Any]], changes: ChangeRules | None = None
    ) -> Goal:
        """Register a goal under a name. Its plan is made when it is started. Raises NameTaken, BadPlan."""
        full = check_workflow_name(self._prefix + name)
        goal = Goal(self, full, goal_names(goals), review=read_review(full, changes))
        if not goal.goals:
            raise BadPlan(f"The goal {name} names no step.", code="goal.no_goal")
        self._keep_goal(goal)
        return goal

    def _keep_goal(self, goal: Goal) -> None:
        known = self._goals.get(goal.name)
        if known is not None and known.declared != goal.declared and in_notebook():
            self.root().redefinitions.say(goal.name)
        elif goal.name in self.runnable_names() and (known is None or known.declared != goal.declared):
            raise NameTaken(f'Another workflow is already called "{goal.name}".', hint=RENAME)
        self._goals[goal.name] = goal
        self._define_goals(goal.goals)
        if self._parent is not None:
            self._parent._keep_goal(goal)  # noqa: SLF001

    def make_plan(self, goals: Sequence[str], given: Iterable[str]) -> CorePlan:
        """Return the plan for goals. A goal may also be a step without ``gives``."""
        self._define_goals(goals)
        return make_plan(self.planner, goals, given)

    def achievement(self, goals: Sequence[Any], given: Mapping[str, Any]) -> Invocation:
        """Return the invocation for goals that are not registered under a name."""
        goal = Goal(self, GOAL, goal_names(goals))
        return Invocation(goal, goal.given(given))

    def _define_goals(self, names: Sequence[str]) -> None:
        """Add steps, graphs and workflows to the planner because they are named as goals."""
        for name in names:
            work = self._steps.get(name) or self._graphs.get(name) or self._newest.get(name)
            if work is not None and name not in self.planner:
                self._define(work)

    def _plan_with(self, work: Step[Any, Any] | Workflow[Any, Any] | Graph) -> None:
        is_goal = any(work.name in goal.goals for goal in self._goals.values())
        if work.gives or is_goal or (work.name in self.planner and in_notebook()):
            self._define(work)

    def redefine(self, step: Step[Any, Any]) -> None:
        """Define a step again in the planner, because an undo was registered for it."""
        self.revision += 1
        if step.body.name in self.planner:
            self._define(step)
        if self._parent is not None:
            self._parent.redefine(step)

    def _define(self, work: Step[Any, Any] | Workflow[Any, Any] | Graph) -> None:
        if isinstance(work, Step):
            definition = step_definition(work)
        else:
            definition = workflow_definition(work) if isinstance(work, Workflow) else graph_step_definition(work)
        self._refuse_other_in_store(definition)
        decide = self.planner.update if definition.id in self.planner else self.planner.register
        for event in decide(definition, GOAL_LANGUAGES):
            self.planner.evolve(event)

    def _refuse_other_in_store(self, definition: StepDef) -> None:
        """Refuse a step that the store has with another definition.

        If both definitions are the same, the step no longer counts as one from the store.
        """
        stored = self.adopted.get(definition.id)
        if stored is not None and stored != definition:
            raise NameTaken(
                f"The step {definition.id} is registered in the store with another definition.",
                hint=f"Rename one, or run: weft steps unregister {definition.id}",
            )
        self.adopted.pop(definition.id, None)

    def planned(self) -> list[StepDef]:
        """Return the steps that goals are planned with."""
        return [entry.definition for entry in self.planner.entries.values()]

    def own_steps(self) -> list[StepDef]:
        """Return those of these steps that do not come from the store."""
        return [step for step in self.planned() if step.id not in self.adopted]

    def planned_step(self, name: str) -> StepDef | None:
        """Return a step that goals are planned with; None if there is no such step."""
        return self.planner.step(name) if name in self.planner else None

    def learn_steps(self, steps: Mapping[str, StepDef]) -> list[WeftError]:
        """Replace the steps from the store that goals are planned with. Returns the errors of steps that do not fit."""
        self.revision += 1
        return merge_stored_steps(self.planner, steps, self.adopted)

    def learning(self, steps: Mapping[str, StepDef]) -> Learning:
        """Prepare to do that on a copy, in a thread."""
        return Learning(self, steps)

    # --- lookup ---------------------------------------------------------------------------------------------------

    def find_step(self, name: str) -> Step[Any, Any] | None:
        return self._steps.get(name)

    def find_body(self, name: str) -> StepBody | None:
        found = self._steps.get(name)
        return found.body if found is not None else None

    def step_policy(self, step: str) -> Policy | None:
        found = self._steps.get(step) or self.planned_step(step)
        return found.policy if found is not None else None

    def step_undo(self, step: str) -> UndoPlan | None:
        found = self._steps.get(step)
        if found is not None:
            return found.undo_plan
        planned = self.planned_step(step)
        return planned.undo if planned is not None else None

    def step_parameters(self, step: str) -> list[str] | None:
        found = self._steps.get(step)
        if found is not None:
            return [parameter.name for parameter in found.signature.parameters]
        planned = self.planned_step(step)
        return argument_names(planned) if planned is not None else None

    def step_names(self) -> list[str]:
        """Return the names of the functions that are registered as steps."""
        return list(self._steps)

    def callable_names(self) -> list[str]:
        """Return the steps that a graph's node may call: Python steps, and HTTP and script steps of the catalogue."""
        catalogued = [step.id for step in self.planned() if not isinstance(step.way, StepWay) and not why_planned(step)]
        return [*self._steps, *catalogued]

    def injected(self, queues: Sequence[str] | None) -> Mapping[str, Sequence[Injected]]:
        """Return which resources the steps of these queues take. None means all queues. Raises BadResource."""
        performed = [step for step in self._steps.values() if queues is None or step.policy.queue in queues]
        for step in performed:
            self.resources.refuse_ambiguous_inputs(step.name, step.signature)
        return {step.name: step.signature.injected for step in performed if step.signature.injected}

    def open_resources(self) -> HostResources | None:
        """Return the resources that are open, if this process hosts the app."""
        app = self.root()._app  # noqa: SLF001
        return app.open_resources() if app is not None else None

    def queue_names(self) -> list[str]:
        return sorted({"default", *(step.policy.queue for step in self._steps.values())})

    def find_program(self, workflow: str, version: str) -> WorkflowProgram | None:
        return self.programs.get((workflow, version))

    def known(self, workflow: str, version: str) -> Runnable[Any] | None:
        """Return the workflow, graph or goal with this name and version; None if there is none."""
        if workflow == HOOK:
            return self.hooks.graphs.get(version)
        graph = self._graphs.get(workflow) or self._goals.get(workflow)
        if graph is not None and graph.version == version:
            return graph
        return self._workflows.get((workflow, version))

    def workflow_versions(self) -> list[tuple[str, str]]:
        return list(self._workflows)

    def runnable_names(self) -> list[str]:
        return sorted({*self._newest, *self._graphs, *self._goals})

    def goals(self) -> list[Goal]:
        return list(self._goals.values())

    def graphs(self) -> list[Graph]:
        return list(self._graphs.values())

    def workflow_named(self, name: str) -> Workflow[Any, Any]:
        """Return the newest registered version of a code workflow. Raises UnknownWorkflow."""
        found = self.runnable_named(name)
        if isinstance(found, Workflow):
            return found
        raise UnknownWorkflow(f'"{name}" is a {found.style}, not a code workflow.')

    def newest(self, name: str) -> Runnable[Any] | None:
        """Return the newest registered version of a workflow of any style, if there is one."""
        return self._newest.get(name) or self._graphs.get(name) or self._goals.get(name)

    def runnable_named(self, name: str) -> Runnable[Any]:
        """Return the newest registered version of a workflow of any style. Raises UnknownWorkflow."""
        found = self.newest(name)
        if found is not None:
            return found
        raise unknown_workflow(name, self.runnable_names())

    def invocation(self, call: Any, given: Mapping[str, Any] | None) -> Invocation:
        """Return the invocation of a call, or of a workflow (or its name) with a mapping of arguments."""
        if type(call) is CoroutineType:
            return _unpack_call(call)
        workflow = self.runnable_named(call) if isinstance(call, str) else call
        if not isinstance(workflow, Runnable):
            raise UsageError(
                f"{call!r} is not a workflow or a call of one.",
                hint='Write app.run(order("o-1")) or app.run(order, {"order_id": "o-1"}).',
            )
        return Invocation(workflow, workflow.given(given or {}))

    def root(self) -> Registrations:
        """Return the registrations of the app that includes this group, or else of the group itself."""
        return self._parent.root() if self._parent is not None else self

    @property
    def service(self) -> RunService:
        """The run service of the app. Raises NotRunning."""
        if self._app is None:
            raise NotRunning(
                "This group is not included in an app, so it has no runs.", hint="Call app.include(group)."
            )
        return self._app.service

    async def run_and_wait(self, invocation: Invocation) -> Any:
        """Start a run and return its result. This is what awaiting a workflow outside a workflow does."""
        app = self.root()._app  # noqa: SLF001
        if app is None:
            raise NotRunning(
                "This group is not included in an app, so its workflows cannot run.", hint="Call app.include(group)."
            )
        return await app.run_and_wait(invocation)


def _unpack_call(call: Coroutine[Any, Any, Any]) -> Invocation:
    """Close a call that was not awaited, and return its workflow and arguments."""
    frame = getattr(call, "cr_frame", None)
    if getattr(call, "cr_code", None) is not perform_workflow.__code__ or frame is None:
        call.close()
        raise UsageError(
            f"{getattr(call, '__qualname__', call)} is not a call of a workflow.",
            hint="Only a workflow can be run. Await a step inside a workflow.",
        )
    invocation = frame.f_locals["invocation"]
    call.close()
    assert isinstance(invocation, Invocation)
    return invocation
