"""Groups: collections of steps and workflows without a store. The modules of a large application define them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from weft.authoring.context import Context
from weft.authoring.goals import Goal, Plan, goal_names
from weft.authoring.graphs import Graph
from weft.authoring.needs import When
from weft.authoring.policies import Duration, Retry
from weft.authoring.registrations import Registrations
from weft.authoring.runnable import Runnable
from weft.authoring.steps import Step
from weft.authoring.workflows import Workflow
from weft.core.events import Effect, Overlap
from weft.runtime.schedule_form import ScheduleForm

P = ParamSpec("P")
R = TypeVar("R")


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
        """Register a function as a step."""
        if fn:
            return self.registered.add_step(fn[0], name=None)
        return StepDecorator(self.registered, policies)

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
    ) -> WorkflowDecorator: ...
    def workflow(self, *fn: Any, **options: Any) -> Any:
        """Register an async function as a workflow."""
        if fn:
            return self.registered.add_workflow(fn[0])
        return WorkflowDecorator(self.registered, options)

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

    def include(self, *groups: Registrar) -> None:
        """Include the steps and workflows of other groups, also those that are registered later."""
        for group in groups:
            self.registered.include(group.registered)

    def goal(self, name: str, *goals: str | Step[..., Any] | Runnable[Any]) -> Goal:
        """Register a goal under a name. Its plan is made when it is started. Raises NameTaken, BadPlan."""
        return self.registered.add_goal(name, goals)

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
        )
        self.registered.add_schedule(form)

    def plan(self, *goals: str | Step[..., Any] | Runnable[Any], given: Mapping[str, Any] | Iterable[str] = ()) -> Plan:
        """Return the plan for these goals from the given facts. Starting the goals would make the same plan.

        Raises:
            UnknownStep: a goal is not registered.
            BadPlan: no goals are given.
        """
        return Plan(self.registered.make_plan(goal_names(goals), list(given)), self.registered)


class Group(Registrar):
    """A collection of steps and workflows that an app can include. ``prefix`` is prepended to their names."""

    def __init__(self, prefix: str = "") -> None:
        super().__init__(Registrations(prefix))


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
        return self._registered.add_step(fn, **{"name": None, **self._policies})


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
        return self._registered.add_workflow(fn, **self._options)
