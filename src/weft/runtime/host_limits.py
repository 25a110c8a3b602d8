"""The limits that hold for the steps and workflows of a host: those of its code, and those that others declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.ports.tasks import STEP_LIMIT, WORKFLOW_LIMIT, KeyLimit, KeyLimits
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.key_limits import DeclaredLimit


class HostLimits:
    """Knows which steps and workflows have limits. The store has the numbers, which hold for all hosts."""

    def __init__(self, catalogue: HostCatalogue, store: KeyLimits, built_in: Callable[[], Sequence[str]]) -> None:
        """``built_in`` returns the names of steps that are not in the catalogue."""
        self._catalogue = catalogue
        self._built_in = built_in
        self._own = catalogue.limits()
        self._store = store
        self._stored: Mapping[str, KeyLimit] = {}
        self._published: Mapping[str, KeyLimit] | None = None
        self.any = bool(self._own)
        """Whether there is any limit at all, here or in the store."""
        self.paced = False
        """Whether any limit allows more as time passes."""
        self.for_runs = False
        """Whether any workflow has a limit."""

    async def refresh(self) -> None:
        """Declare the limits of this host if they have changed here, and read those of all hosts."""
        own = {name: one.limit for name, one in self._own.items()}
        if own != self._published:
            await self._publish_limits(own)
            self._published = own
        self._stored = stored = await self._store.declared()
        self.any = bool(stored)
        self.paced = any(limit.rate is not None for limit in stored.values())
        self.for_runs = any(name.startswith(WORKFLOW_LIMIT) for name in stored)

    async def _publish_limits(self, own: Mapping[str, KeyLimit]) -> None:
        """Declare what differs in the store. A step or workflow of this host that lost its limit is unlimited."""
        stored = await self._store.declared()
        mine = {f"{STEP_LIMIT}{step}" for step in (*self._catalogue.steps(), *self._built_in())}
        mine |= {f"{WORKFLOW_LIMIT}{workflow}" for workflow in self._catalogue.startable()}
        changed: dict[str, KeyLimit | None] = {name: limit for name, limit in own.items() if stored.get(name) != limit}
        changed |= {name: None for name in stored if name in mine and name not in own}
        if changed:
            await self._store.declare(changed)

    def of_step(self, step: str) -> DeclaredLimit | None:
        """Return the limit of a step."""
        return self._find_limit(STEP_LIMIT + step) if self.any else None

    def of_workflow(self, workflow: str) -> DeclaredLimit | None:
        """Return the limit of a workflow."""
        return self._find_limit(WORKFLOW_LIMIT + workflow) if self.any else None

    def _find_limit(self, name: str) -> DeclaredLimit | None:
        own = self._own.get(name)
        if own is not None:
            return own
        stored = self._stored.get(name)
        return DeclaredLimit(stored) if stored is not None else None
