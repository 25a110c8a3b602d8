"""The resources that a host keeps open. Each is opened and closed in a task of its own, as some of them require."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.authoring.resources import Resource, ResourceTable
from weft.errors import ResourceFailed
from weft.steps.resources import TASK_PREFIX
from weft.steps.signature import Injected
from weft.steps.tracebacks import loggable_error

log = logging.getLogger("weft")

SLOW_SECONDS = 10.0
"""After how long a host says that it waits for a resource to open."""
CLOSE_SECONDS = 10.0
"""How long a resource may take to close. After that it is cancelled, so that its host can end."""
GRACE_SECONDS = 1.0
"""How long a resource may take to end after it was cancelled. After that it is abandoned."""

Fake = Callable[[Resource[Any]], tuple[bool, Any]]
"""Says whether a resource is faked, and by what. For simulated worlds."""


class OpenResources:
    """Opens resources, each once, and closes them in reverse order.

    A host opens what its steps need when it starts. What is registered later is opened at first use.
    """

    def __init__(self, table: ResourceTable, fake: Fake | None = None) -> None:
        self._table = table
        self._fake = fake
        self._held: dict[str, _Held] = {}
        self._opened: list[_Held] = []
        """Those that are open, oldest first."""

    async def start(self, wanted: Mapping[str, Sequence[Injected]]) -> None:
        """Open what these steps need. If one fails, those before it are closed. Raises ResourceFailed, BadResource."""
        try:
            for resource in self._table.needed(wanted):
                notice = asyncio.get_running_loop().call_later(SLOW_SECONDS, _note_slow, resource)
                try:
                    await self._get(resource)
                finally:
                    notice.cancel()
        except BaseException:
            await self.close()
            raise

    async def arguments(self, who: str, injected: Sequence[Injected]) -> dict[str, Any]:
        """Return the resources for these parameters, by parameter. Raises ResourceFailed, BadResource."""
        found: dict[str, Any] = {}
        for parameter in injected:
            resource = self._table.find(parameter, who)
            if resource is not None:
                found[parameter.name] = await self._get(resource)
        return found

    async def _get(self, resource: Resource[Any]) -> Any:
        if self._fake is not None:
            faked, value = self._fake(resource)
            if faked and isinstance(value, BaseException):
                raise _failed(resource, value)
            if faked:
                return value
        held = self._held.get(resource.name)
        if held is None or held.resource is not resource:
            self._table.needed({resource.name: resource.needs})  # refuses a circle, which would wait forever
            held = self._held[resource.name] = _Held(resource)
            held.task = asyncio.create_task(self._hold(held), name=f"{TASK_PREFIX}{resource.name}")
        return await asyncio.shield(held.value)

    async def _hold(self, held: _Held) -> None:
        """Open a resource, keep it until it is closed, and close it."""
        resource = held.resource
        try:
            arguments = await self.arguments(f"the resource {resource.name}", resource.needs)
            async with resource.open(arguments) as value:
                held.value.set_result(value)
                self._opened.append(held)
                await held.closing.wait()
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not _is_running(held.task):
                raise  # its loop was dropped, as a simulated process that died
            self._drop(held)
            if not held.value.done():
                held.value.set_exception(_failed(resource, error))
                held.value.exception()  # seen, even if nobody waits for it any more
            else:
                what = "failed while closing" if held.closing.is_set() else "ended while it was in use"
                log.exception("weft: the resource %s %s", resource.name, what, exc_info=loggable_error(error))

    def _drop(self, held: _Held) -> None:
        """Forget a resource, so that the next use opens it again."""
        if self._held.get(held.resource.name) is held:
            del self._held[held.resource.name]

    async def close(self) -> None:
        """Close everything, newest first. What fails or takes too long is logged, and the others are closed."""
        for held in [held for held in self._held.values() if not held.value.done()]:
            await _stop(held)
        while self._opened:
            held = self._opened.pop()
            held.closing.set()
            if held.task is not None:
                await asyncio.wait([held.task], timeout=CLOSE_SECONDS)
                if not held.task.done():
                    log.error("weft: the resource %s did not close within %d s", held.resource.name, CLOSE_SECONDS)
                    await _stop(held)
        self._held.clear()


class _Held:
    """A resource that is being opened, or open."""

    def __init__(self, resource: Resource[Any]) -> None:
        self.resource = resource
        self.value: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.closing = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


def _is_running(task: asyncio.Task[None] | None) -> bool:
    """Return whether this code is called by its task, and not while the task is thrown away."""
    return asyncio._get_running_loop() is not None and asyncio.current_task() is task  # noqa: SLF001 - documented


async def _stop(held: _Held) -> None:
    """Cancel what a resource does. If that does not end it, abandon it."""
    task = held.task
    if task is None:
        return
    task.cancel()
    await asyncio.wait([task], timeout=GRACE_SECONDS)
    if not task.done():
        log.error(
            "weft: the resource %s keeps running although it was cancelled; it is abandoned. "
            "Is there an 'except' for CancelledError in it?",
            held.resource.name,
        )
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it was just reported
        # asyncio.run would wait for it when the loop ends.
        asyncio._unregister_task(task)  # noqa: SLF001 - documented for those who extend asyncio


def _note_slow(resource: Resource[Any]) -> None:
    log.warning(
        "weft: the host waits for the resource %s, which has not opened within %d s. Does what it connects to answer?",
        resource.name,
        SLOW_SECONDS,
    )


def _failed(resource: Resource[Any], error: BaseException) -> ResourceFailed:
    said = f"{type(error).__name__}: {error}".rstrip(": .")
    failure = ResourceFailed(
        f"The resource {resource.name} could not be opened: {said}.",
        hint="Is what it connects to running, and are its settings right?",
        resource=resource.name,
    )
    failure.__cause__ = error
    return failure
