"""The parameters of steps that are resources: what a host keeps open, such as a pool of connections.

They are no input: they are in no event, no schema and no plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

from weft.errors import NotRunning
from weft.steps.python import PythonStep
from weft.steps.raised import call_in_thread
from weft.steps.signature import Injected
from weft.steps.task import Executor

TASK_PREFIX = "weft-resource-"
"""Begins the name of the asyncio task that opens and closes a resource; the rest is the name of the resource."""


class HostResources(Protocol):
    """The resources that a host keeps open."""

    async def arguments(self, who: str, injected: Sequence[Injected]) -> Mapping[str, Any]:
        """Return the resources for these parameters. Raises ResourceFailed, BadResource."""
        ...


OPEN_RESOURCES: ContextVar[HostResources] = ContextVar("weft_resources")
"""The resources of the host that performs the current step."""


class ResourceStep(PythonStep):
    """A Python function that takes resources besides its input."""

    __slots__ = ()

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        arguments = self._signature.unpack(given, what=self.name)
        resources = await resources_of(self.name, self._signature.injected, None)
        call = partial(self.fn, **arguments, **resources)
        value = await call() if self._asynchronous else await call_in_thread(executor, call)
        return self.encode_result(value)


async def resources_of(step: str, injected: Sequence[Injected], hosted: HostResources | None) -> Mapping[str, Any]:
    """Return the resources of a step. Outside a host's step, those of the host that the app has, if any.

    Raises NotRunning without a host.
    """
    found = OPEN_RESOURCES.get(hosted)
    if found is None:
        names = ", ".join(each.name for each in injected)
        raise NotRunning(
            f"{step} needs {names}, and resources are open only while the app is hosted.",
            hint=f"Host the app, or call the function itself: {step}.fn(..., {injected[0].name}=...)",
        )
    return await found.arguments(step, injected)
