"""The decorators and methods with which groups and apps register steps, workflows, graphs, goals and agents."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

from weft.agents.budget import Budget
from weft.authoring.change_rules import ChangeRules
from weft.authoring.context import Context
from weft.authoring.goals import Goal, Plan, goal_names
from weft.authoring.graphs import Graph
from weft.authoring.hooks import HookDecorator, HookFilter
from weft.authoring.limits import Limit
from weft.authoring.needs import When
from weft.authoring.options import check_options, only_function, options_of
from weft.authoring.policies import Duration, Retry
from weft.authoring.registrations import Registrations
from weft.authoring.resources import Resource
from weft.authoring.runnable import Runnable
from weft.authoring.start_rules import KINDS, Batch, Debounce, Singleton
from weft.authoring.steps import Step
from weft.authoring.workflows import Workflow
from weft.core.events import Effect, Overlap
from weft.core.run.hook_events import HookKind
from weft.runtime.schedule_form import ScheduleForm

if TYPE_CHECKING:
    from weft.authoring.agents.agent import Agent
    from weft.authoring.agents.declaration import AgentOptions
    from weft.authoring.models import ModelOptions

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

STEP_OPTIONS = options_of(Registrations.add_step) | {"name"}
WORKFLOW_OPTIONS = options_of(Registrations.add_workflow) | set(KINDS)


class Registrar:
    """The decorators and methods with which groups and apps register steps, workflows, graphs and goals."""

    def __init__(self, registered: Registrations) -> None:
        self.registered = registered

    @overload
    def step(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def step(self, fn: Callable[P, R], /) -> Step[P, R]: ...
    @overload
    def step(
        self,
        *,
        name: str | None = None,
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
    ) -> StepDecorator: ...
    def step(self, *fn: Any, **policies: Any) -> Any:
        """Register a function as a step.

        - ``retries=3``: how often a failed attempt is repeated, or a ``weft.Retry``. ``timeout``: for each attempt.
        - ``raises``: exceptions that reach the workflow with their own class, and are not retried.
        - ``effect``: ``"idempotent"`` may be repeated with the same key, ``"irreversible"`` is performed at most once,
          ``"pure"`` any number of times.
        - ``queue``: which hosts and workers perform it. ``run_in="process"``: in a process of its own.
        - ``limit=weft.Limit(concurrency=5, key="customer_id")``: at most five at once per customer, over all hosts.
        - For goals: ``gives`` the facts that it provides, ``when`` a predicate, ``width`` how many work items at once,
          ``cache`` how long equal inputs reuse a result.
        - ``labels``: names and values that are stored with the step.
        """
        decorate = StepDecorator(self.registered, policies)
        return decorate(only_function("step", fn)) if fn else decorate

    @overload
    def resource(self, fn: Callable[..., AsyncIterator[T]], /) -> Resource[T]: ...
    @overload
    def resource(self, *, name: str) -> ResourceDecorator: ...
    def resource(self, *fn: Any, name: str | None = None) -> Any:
        """Register an async generator that opens something for steps, yields it, and closes it.

        A host opens what its steps need when it starts, each once, and closes it when it stops, newest first. A step
        takes it by a parameter with the default ``weft.injected``, which is found by its name or its type. The
        parameters of a resource are other resources. Raises BadResource, NameTaken.
        """
        return self.registered.resources.register(fn[0]) if fn else ResourceDecorator(self.registered, name)

    @overload
    def workflow(self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
    @overload
    def workflow(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
    @overload
    def workflow(
        self,
        *,
        name: str | None = None,
        version: str = "1",
        timeout: Duration | None = None,
        gives: str | Sequence[str] = (),
        changes: ChangeRules | None = None,
        singleton: Singleton | None = None,
        debounce: Debounce | None = None,
        batch: Batch | None = None,
        limit: Limit | None = None,
        mcp: bool = False,
        budget: Budget | None = None,
    ) -> WorkflowDecorator: ...
    def workflow(self, *fn: Any, **options: Any) -> Any:
        """Register an async function as a workflow.

        ``changes={"review": ["team:ops"]}``: one of these people or groups must agree to every patch of its runs.
        ``singleton``, ``debounce`` or ``batch``: a rule about its starts.
        ``limit=weft.Limit(concurrency=5, key="customer_id")``: at most five open runs for each customer; others wait.
        ``mcp=True``: MCP clients may start it, as a tool of ``weft mcp`` and of the server's ``/mcp``.
        ``budget=weft.Budget(money="2 USD")``: what each run, with everything below it, may spend.
        """
        decorate = WorkflowDecorator(self.registered, options)
        return decorate(only_function("workflow", fn)) if fn else decorate

    def graph(self, source: str | Path | Mapping[str, Any] | Graph, *, gives: str | Sequence[str] = ()) -> Graph:
        """Register a graph: a dict, a graph built in Python, or a file, here or next to the calling program.

        ``gives`` names the fields of its output that are facts for goals. Raises BadGraph, which lists all problems.
        """
        return self.registered.add_graph(source, gives, sys._getframe(1).f_code.co_filename)  # noqa: SLF001

    def steps(self, source: str | Path | Mapping[str, Any]) -> list[str]:
        """Register the steps of a document (``weft: steps/1``): a dict, or a file, here or next to the calling program.

        Either all of them are registered or none. Returns their names. Goals are planned with them.

        Raises:
            BadStep: the document is not valid; ``context["findings"]`` lists all problems.
            NameTaken: a step with one of the names is registered with another definition.
            NotFound: there is no such file.
        """
        return self.registered.add_document(source, sys._getframe(1).f_code.co_filename)  # noqa: SLF001

    def model(self, name: str, *, url: str, **options: Unpack[ModelOptions]) -> None:
        """Declare a model that agents can use: ``app.model("fast", url="https://api.openai.com/v1", model="gpt-5")``.

        ``url`` is where an API begins that is compatible with OpenAI's. ``model`` is the provider's name of the model,
        if it is not ``name``. ``fallback`` names the models that are asked if this one is unavailable. Raises BadValue,
        NameTaken.
        """
        self.registered.models.declare(name, url, options)

    @overload
    def agent(self, name: str, *, model: str, **options: Unpack[AgentOptions]) -> Agent[str]: ...
    @overload
    def agent(self, name: str, *, model: str, output: type[R], **options: Unpack[AgentOptions]) -> Agent[R]: ...
    @overload
    def agent(
        self, name: str, *, model: str, output: Mapping[str, Any], **options: Unpack[AgentOptions]
    ) -> Agent[Any]: ...
    def agent(
        self,
        name: str,
        *,
        model: str,
        output: Any = str,
        system: str = "",
        prompt: str | None = None,
        tools: Sequence[Any] = (),
        turns: int = 25,
        approvers: Sequence[str] = (),
        approve: str = "irreversible",
        budget: Budget | None = None,
        gives: str | Sequence[str] = (),
        width: int = 8,
        repairs: int = 2,
        repeats: int = 5,
        compact: float = 0.8,
        result_bytes: int = 16_384,
        stream: str = "agent",
        options: Mapping[str, Any] | None = None,
        on_exhausted: Literal["fail", "ask", "answer"] = "fail",
    ) -> Agent[Any]:
        """Register an agent: a model that calls tools until it has an answer. It is called like a workflow.

        ``tools`` are steps, workflows, other agents, ``weft.tool(...)``, ``weft.person()``, MCP servers, or names.
        ``prompt`` is a template, whose names are the agent's parameters: ``"Rate ${company}"``. ``approve`` says which
        calls people must agree to, and ``approvers`` who is asked. ``turns`` is how often the model is asked at most,
        and ``budget`` what a run may spend; ``on_exhausted`` says what happens when one is used up.

        Raises BadValue, UsageError, NameTaken, LimitExceeded.
        """
        from weft.authoring.agents.declaration import AgentDeclaration  # noqa: PLC0415 - few programs have agents
        from weft.authoring.agents.registration import add_agent  # noqa: PLC0415

        return add_agent(
            self.registered,
            AgentDeclaration(
                name=self.registered.prefixed(name),
                model=model,
                output=output,
                system=system,
                prompt=prompt,
                tools=tools,
                turns=turns,
                approvers=approvers,
                approve=approve,
                budget=budget,
                gives=(gives,) if isinstance(gives, str) else tuple(gives),
                width=width,
                repairs=repairs,
                repeats=repeats,
                compact=compact,
                result_bytes=result_bytes,
                stream=stream,
                options=options or {},
                on_exhausted=on_exhausted,
            ),
        )

    def pipeline(self, name: str, steps: Sequence[Mapping[str, Any]]) -> Step[[Any], Any]:
        """Register a pipeline as a step: 1 to 20 small steps over JSON data, mostly tables.

        ``app.pipeline("cheapest", [{"step": "table_sort", "field": "price"}, {"step": "top_k", "k": 3}])``. The step
        takes the data and returns the result. Raises PipelineFailed, whose ``index`` says which step is wrong.
        """
        from weft.authoring.pipelines import add_pipeline  # noqa: PLC0415 - few programs have pipelines

        return add_pipeline(self.registered, name, steps)

    def include(self, *groups: Registrar) -> None:
        """Include the steps and workflows of other groups, also those that are registered later."""
        for group in groups:
            self.registered.include(group.registered)

    def goal(self, name: str, *goals: str | Step[..., Any] | Runnable[Any], changes: ChangeRules | None = None) -> Goal:
        """Register a goal under a name. Its plan is made when it is started. Raises NameTaken, BadPlan.

        ``changes={"review": ["team:ops"]}``: one of these people or groups must agree to every patch of its runs.
        """
        return self.registered.add_goal(name, goals, changes)

    def schedule(
        self,
        name: str,
        call: Coroutine[Any, Any, Any] | Runnable[Any] | str,
        input: Mapping[str, Any] | None = None,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        timezone: str = "UTC",
        dst: Literal["run", "skip"] = "run",
        overlap: Overlap = "skip",
        catch_up: Duration = "1m",
        jitter: Duration | None = None,
        until: datetime | str | None = None,
        pause_after: int | None = None,
        priority: int = 0,
    ) -> None:
        """Start a workflow at fixed times, on whichever host of the app is there. Each time starts one run.

        Raises BadSchedule with all that is wrong, NameTaken.
        """
        invocation = self.registered.invocation(call, input)
        form = ScheduleForm(
            name=self.registered.prefixed(name),
            workflow=invocation.workflow.name,
            input=invocation.given,
            cron=cron,
            every=every,
            timezone=timezone,
            dst=dst,
            overlap=overlap,
            catch_up=catch_up,
            jitter=jitter,
            until=until,
            pause_after=pause_after,
            priority=priority,
        )
        self.registered.add_schedule(form)

    def on(
        self,
        *kinds: HookKind,
        workflow: str | Runnable[Any] | None = None,
        tenant: str | None = None,
        where: str | None = None,
        name: str | None = None,
    ) -> HookDecorator:
        """Call a function when something happens to a run: ``@app.on("run_failed", workflow="order")``.

        The function is a step that takes a ``weft.HookEvent``. Each event is delivered by a run of ``weft.hook``, which
        begins in the commit of the event. ``where`` is a filter in CEL over the event. Raises BadHook, NameTaken.
        """
        return HookDecorator(self.registered, kinds, HookFilter(workflow, tenant, where), name)

    def plan(self, *goals: str | Step[..., Any] | Runnable[Any], given: Mapping[str, Any] | Iterable[str] = ()) -> Plan:
        """Return the plan for these goals from the given facts. Starting the goals would make the same plan.

        Raises:
            UnknownStep: a goal is not registered.
            BadPlan: no goals are given.
        """
        return Plan(self.registered.make_plan(goal_names(goals), list(given)), self.registered)


class StepDecorator:
    """The decorator that ``app.step(...)`` returns. It registers the function that it decorates."""

    def __init__(self, registered: Registrations, policies: dict[str, Any]) -> None:
        self._registered = registered
        self._policies = policies

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Step[P, R]: ...
    def __call__(self, fn: Any, /) -> Any:
        check_options("step", fn, self._policies, STEP_OPTIONS)
        return self._registered.add_step(fn, **{"name": None, **self._policies})


class ResourceDecorator:
    """The decorator that ``app.resource(name=...)`` returns. It registers the function that it decorates."""

    def __init__(self, registered: Registrations, name: str | None) -> None:
        self._registered = registered
        self._name = name

    def __call__(self, fn: Callable[..., AsyncIterator[T]], /) -> Resource[T]:
        return self._registered.resources.register(fn, self._name)


class WorkflowDecorator:
    """The decorator that ``app.workflow(...)`` returns. It registers the function that it decorates."""

    def __init__(self, registered: Registrations, options: dict[str, Any]) -> None:
        self._registered = registered
        self._options = options

    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
    def __call__(self, fn: Any, /) -> Any:
        check_options("workflow", fn, self._options, WORKFLOW_OPTIONS)
        return self._registered.add_workflow(fn, **self._options)
