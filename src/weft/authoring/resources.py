"""Resources: async context managers that a host opens once and gives to steps, by type or by name."""

from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

from weft.authoring.needs import Const, Each, Fact
from weft.authoring.notebooks import Redefinitions
from weft.core.code.locations import check_name
from weft.errors import BadResource, NameTaken
from weft.steps.signature import Injected, Signature, injected_parameters

T = TypeVar("T")


class Resource(Generic[T]):
    """A resource that ``@app.resource`` registered: what it is called, what it gives, and what it needs."""

    def __init__(self, fn: Callable[..., AsyncIterator[T]], name: str | None) -> None:
        if not inspect.isasyncgenfunction(fn):
            raise BadResource(
                f"{getattr(fn, '__qualname__', fn)} is not an async generator, so it cannot be a resource.",
                hint="Write `async def` with one `yield`: open it, yield it, close it.",
            )
        self.name: str = check_name(name or fn.__name__)
        self.fn = fn
        needs, returned = injected_parameters(fn)
        self.needs: Sequence[Injected] = needs
        self.type: Any = next(iter(typing.get_args(returned)), Any)
        """The type of what it yields; Any if it is not annotated."""
        self.__doc__ = fn.__doc__

    def open(self, arguments: Mapping[str, Any]) -> AbstractAsyncContextManager[T]:
        """Return the context manager that opens it and closes it."""
        return contextlib.asynccontextmanager(self.fn)(**arguments)

    def __repr__(self) -> str:
        return f"<weft resource {self.name}>"


class ResourceTable:
    """The resources of a group or an app, and the rules by which parameters find them."""

    def __init__(self) -> None:
        self._resources: dict[str, Resource[Any]] = {}
        self._parent: ResourceTable | None = None
        self._redefinitions = Redefinitions()

    def register(self, fn: Callable[..., AsyncIterator[T]], name: str | None = None) -> Resource[T]:
        """Register a function as a resource. Raises BadResource, NameTaken."""
        resource = Resource(fn, name)
        self.add(resource)
        return resource

    def add(self, resource: Resource[Any]) -> None:
        """Register a resource, also with the app that includes this group. Raises NameTaken."""
        known = self._resources.get(resource.name)
        again = known is not None and known.fn is not resource.fn
        if known is not None and again and not self._redefinitions.allows(resource.name, known.fn, resource.fn):
            raise NameTaken(
                f'Two resources are called "{resource.name}".', hint='Rename one: @app.resource(name="...").'
            )
        self._resources[resource.name] = resource
        if self._parent is not None:
            self._parent.add(resource)

    def include(self, other: ResourceTable) -> None:
        """Include the resources of another group, also those that are registered later. Raises NameTaken."""
        for resource in other._resources.values():
            self.add(resource)
        other._parent = self

    def find(self, parameter: Injected, of: str) -> Resource[Any] | None:
        """Return the resource for a parameter: that of its name, if the type fits, else the only one of its type.

        Returns None for a parameter of a resource that has a default of its own. Raises BadResource.
        """
        fitting = [each for each in self._resources.values() if _fits(each.type, parameter.type)]
        named = self._resources.get(parameter.name)
        if named is not None and (named in fitting or not (_is_known(named.type) and _is_known(parameter.type))):
            return named
        if len(fitting) == 1:
            return fitting[0]
        if not parameter.required:
            return None
        raise _not_found(parameter, of, fitting, named, self._resources)

    def needed(self, wanted: Mapping[str, Sequence[Injected]]) -> list[Resource[Any]]:
        """Return the resources that these steps need, and what those need, in the order in which they are opened.

        Raises BadResource for one that is not there, for one of several, and for a cycle.
        """
        ordered: dict[str, Resource[Any]] = {}
        for step, parameters in wanted.items():
            for parameter in parameters:
                found = self.find(parameter, step)
                if found is not None:
                    self._visit(found, ordered, [])
        return list(ordered.values())

    def _visit(self, resource: Resource[Any], ordered: dict[str, Resource[Any]], path: list[str]) -> None:
        if resource.name in path:
            cycle = " → ".join([*path[path.index(resource.name) :], resource.name])
            raise BadResource(
                f"Resources need each other in a circle: {cycle}.",
                hint="Let one of them open without the other.",
                code="resource.cycle",
            )
        if resource.name in ordered:
            return
        for parameter in resource.needs:
            found = self.find(parameter, f"the resource {resource.name}")
            if found is not None:
                self._visit(found, ordered, [*path, resource.name])
        ordered[resource.name] = resource

    def refuse_ambiguous_inputs(self, step: str, signature: Signature) -> None:
        """Refuse an input that has the name and the type of a resource. Raises BadResource."""
        for parameter in signature.parameters:
            named = self._resources.get(parameter.name)
            if named is not None and _fits(named.type, parameter.type):
                raise BadResource(
                    f"{step}({parameter.name}) is an input, but has the name and the type of a resource.",
                    hint=f"Write {parameter.name}: ... = weft.injected for the resource, or rename the input.",
                    code="resource.is_input",
                )


def refuse_goal_input(step: str, injected: Iterable[Injected]) -> None:
    """Refuse a resource that is also described as an input of goals. Raises BadResource."""
    for each in injected:
        for item in getattr(each.type, "__metadata__", ()):
            if isinstance(item, (Fact, Each, Const)):
                raise BadResource(
                    f"{step}({each.name}) is both a resource and an input of goals ({type(item).__name__}).",
                    hint=f"Remove one of the two: weft.injected, or weft.{type(item).__name__}.",
                    code="resource.is_input",
                )


def refuse_in_workflow(workflow: str, injected: Sequence[Injected]) -> None:
    """Refuse resources in a workflow, whose code may only await what is recorded. Raises BadResource."""
    if injected:
        raise BadResource(
            f"{workflow} is a workflow, so it cannot take the resource {injected[0].name}.",
            hint="Use the resource in a step.",
        )


def _not_found(
    parameter: Injected,
    of: str,
    fitting: Sequence[Resource[Any]],
    named: Resource[Any] | None,
    known: Mapping[str, Resource[Any]],
) -> BadResource:
    who = f"{of} needs {parameter.name}"
    if fitting:
        names = ", ".join(each.name for each in fitting)
        return BadResource(
            f"{who}, and several resources have its type: {names}.",
            hint="Name the parameter like the one that is meant.",
            code="resource.ambiguous",
        )
    if named is not None:
        types = f"{_type_name(named.type)}, not {_type_name(parameter.type)}"
        return BadResource(
            f"{who}, but the resource of that name gives {types}.",
            hint="Correct the annotation of one of them.",
            code="resource.unknown",
        )
    names = ", ".join(f"{each.name}: {_type_name(each.type)}" for each in known.values()) or "none"
    return BadResource(
        f"{who}, and no resource has this name or the type {_type_name(parameter.type)}.",
        hint=f"Register it with @app.resource. There are: {names}.",
        code="resource.unknown",
    )


def _bare(type_: Any) -> Any:
    return _bare(typing.get_args(type_)[0]) if hasattr(type_, "__metadata__") else type_


def _is_known(type_: Any) -> bool:
    return _bare(type_) not in (Any, object)


def _fits(given: Any, wanted: Any) -> bool:
    """Return whether what a resource gives can be used for a parameter, as far as their annotations say."""
    given, wanted = _bare(given), _bare(wanted)
    if not (_is_known(given) and _is_known(wanted)):
        return False
    if given == wanted:
        return True
    try:
        return issubclass(given, wanted)
    except TypeError:  # a generic type, or a protocol that cannot be checked
        return False


def _type_name(type_: Any) -> str:
    bare = _bare(type_)
    return bare.__name__ if isinstance(bare, type) else str(bare).removeprefix("typing.")
