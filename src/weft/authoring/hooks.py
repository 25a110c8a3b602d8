"""Hooks: steps that are performed when something happens to a run, as ``@app.on`` declares them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

import msgspec

from weft.authoring.graphs import Graph
from weft.authoring.notebooks import in_notebook
from weft.authoring.runnable import Runnable, RunnableGroup
from weft.authoring.steps import Step
from weft.core.code.locations import check_name
from weft.core.run.hook_events import HookEvent
from weft.errors import BadHook, NameTaken
from weft.runtime.hooks import WORKFLOW, Hook, HookTable, read_kinds, read_where
from weft.steps.signature import Parameter, Signature

if TYPE_CHECKING:
    from weft.graphs.load import DocumentContext

R = TypeVar("R")
HookFunction = Callable[[HookEvent], R]
NODE = "deliver"
_NO_EVENT = (str, int, float, bool, bytes, list, tuple, set, frozenset)
"""Types that no event fits: it is an object with named fields."""


class HookFilter(msgspec.Struct, frozen=True):
    """Which runs a hook is told of. None means all."""

    workflow: str | Runnable[Any] | None = None
    tenant: str | None = None
    where: str | None = None


class HookGroup(RunnableGroup, Protocol):
    """What a hook uses of the group that it is registered in."""

    hooks: DeclaredHooks

    def add_step(self, fn: Callable[..., Any], *, name: str | None) -> Step[Any, Any]:
        """Register a function as a step."""
        ...

    def find_step(self, name: str) -> Step[Any, Any] | None:
        """Return a registered step, if there is one of this name."""
        ...

    def document_context(self) -> DocumentContext:
        """Return what graph documents may use."""
        ...

    def prefixed(self, name: str) -> str:
        """Return a name with the prefix of this group."""
        ...


class DeclaredHooks:
    """The hooks of one group or app, and the graphs of their deliveries by version."""

    def __init__(self) -> None:
        self.table = HookTable()
        self.graphs: dict[str, Graph] = {}
        self._parent: DeclaredHooks | None = None

    def add(self, hook: Hook, graph: Graph) -> None:
        """Declare a hook. Raises NameTaken, but in a notebook the newest one counts."""
        if self.table.hooks.get(hook.name, hook) is not hook and not in_notebook():
            raise NameTaken(
                f'Two hooks are called "{hook.name}".',
                hint='Name one: @app.on("run_failed", name="…"). The name is part of the ids of its deliveries.',
            )
        self.table.hooks[hook.name] = hook
        self.graphs.setdefault(graph.version, graph)
        if self._parent is not None:
            self._parent.add(hook, graph)

    def include(self, other: DeclaredHooks) -> None:
        """Include the hooks of another group, also those that it declares later. Raises NameTaken."""
        for hook in other.table.hooks.values():
            self.add(hook, other.graphs[hook.version])
        other._parent = self


class HookDecorator:
    """The decorator that ``app.on(...)`` returns. It declares the function or step that it decorates as a hook."""

    def __init__(self, group: HookGroup, kinds: tuple[Any, ...], chosen: HookFilter, name: str | None) -> None:
        self._group = group
        self._chosen = chosen
        self._name = check_name(group.prefixed(name)) if name is not None else None
        self._what = f"The hook {self._name}" if self._name else "A hook"
        self._kinds = read_kinds(kinds, self._what)
        self._where = read_where(chosen.where, self._what)
        for field in ("tenant", "workflow"):
            if not isinstance(getattr(chosen, field), str | Runnable | None):
                raise BadHook(f"{self._what} has {field}={getattr(chosen, field)!r}, which is not a name.")

    @overload
    def __call__(self, fn: Step[[HookEvent], R], /) -> Step[[HookEvent], R]: ...
    @overload
    def __call__(self, fn: Callable[[HookEvent], Coroutine[Any, Any, R]], /) -> Step[[HookEvent], R]: ...
    @overload
    def __call__(self, fn: Callable[[HookEvent], R], /) -> Step[[HookEvent], R]: ...
    def __call__(self, fn: Any, /) -> Any:
        if not isinstance(fn, Step) and not inspect.isfunction(fn):
            raise BadHook(
                f"{self._what} cannot be {fn!r}: a hook is a function or a step.",
                hint="To start a workflow, call app.start(...) in the function.",
                code="hook.bad_function",
            )
        step = self._step(fn)
        workflow = self._chosen.workflow
        graph = self._graph(step)
        hook = Hook(
            name=self._name or step.name,
            version=graph.version,
            kinds=self._kinds,
            workflow=workflow.name if isinstance(workflow, Runnable) else workflow,
            tenant=self._chosen.tenant,
            where=self._where,
        )
        self._group.hooks.add(hook, graph)
        return step

    def _step(self, fn: Any) -> Step[Any, Any]:
        """Return the step of the hook. A function is registered as one, unless it cannot be a hook. Raises BadHook."""
        name = fn.name if isinstance(fn, Step) else fn.__name__
        signature = fn.signature if isinstance(fn, Step) else Signature.of(fn)
        required = [parameter.name for parameter in signature.parameters if parameter.required]
        if not signature.parameters or len(required) > 1:
            takes = f"needs {', '.join(required)}" if required else "takes nothing"
            raise BadHook(
                f"{name} cannot be a hook: it {takes}, and a hook gets one event.",
                hint=f"Write: async def {name}(event: weft.HookEvent) -> None",
                code="hook.bad_function",
            )
        event = _event_parameter(signature)
        kind: object = getattr(event.type, "__origin__", event.type)
        if isinstance(kind, type) and issubclass(kind, _NO_EVENT):
            raise BadHook(
                f"{name} cannot be a hook: its {event.name} is {kind.__name__}, and a hook gets an event.",
                hint=f"Write: async def {name}({event.name}: weft.HookEvent) -> None",
                code="hook.bad_function",
            )
        step = fn if isinstance(fn, Step) else self._group.add_step(fn, name=None)
        known = self._group.find_step(step.body.name)
        if known is None or known.body is not step.body:
            raise BadHook(
                f"The step {step.name} belongs to another app or group.",
                hint="Include its group first, or decorate it in its own group.",
                code="hook.bad_function",
            )
        return step

    def _graph(self, step: Step[Any, Any]) -> Graph:
        """Return the graph of the hook's deliveries: one node, which performs its step with the event."""
        graph = Graph(WORKFLOW)
        graph.node(NODE, step.body.name, args={_event_parameter(step.signature).name: "${input}"})
        graph.register(self._group, self._group.document_context(), ())
        return graph


def _event_parameter(signature: Signature) -> Parameter:
    """Return the parameter that gets the event: the required one, else the first."""
    parameters = signature.parameters
    return next((one for one in parameters if one.required), parameters[0])
