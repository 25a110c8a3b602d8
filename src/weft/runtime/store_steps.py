"""The steps that a process without a host plans with: those in the store, and those of the hosts that are alive."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from weft.core.goal.definitions import StepDef
from weft.errors import WeftError
from weft.goals.load import LoadedSteps, load_steps
from weft.goals.policies import Steps
from weft.ports.clock import Clock
from weft.ports.store import Store
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.runtime.host_steps import steps_of_hosts


class Planner(Steps, Protocol):
    """What plans goals with the steps that it has learned."""

    def planned(self) -> Sequence[StepDef]: ...

    def learn_steps(self, steps: Mapping[str, StepDef]) -> Sequence[WeftError]: ...


class StoreSteps:
    """Lets a planner that has no steps of its own learn those in the store and of the living hosts."""

    def __init__(self, planner: Planner, store: Store, clock: Clock) -> None:
        self._planner = planner
        self._store = store
        self.stored = StoredCatalogue(store.definitions, clock)
        self._known: Mapping[str, StepDef] = {}

    def planned(self) -> Sequence[StepDef]:
        """Return the steps that were known at the last refresh."""
        return self._planner.planned()

    async def load(self, document: Any) -> LoadedSteps:
        """Read a document of steps in a thread: its scripts are compiled, which may be slow. Raises BadStep."""
        return await asyncio.to_thread(lambda: load_steps(document, GOAL_LANGUAGES, self._planner))

    async def refresh(self) -> bool:
        """Learn which steps there are now. Returns whether that has changed. Raises Refused if hosts do not agree."""
        of_hosts = await steps_of_hosts(self._store.definitions, getattr(self._store, "hosts", None)) or {}
        await self.stored.refresh()
        found = {**of_hosts, **self.stored.steps}
        if found == self._known:
            return False
        for fault in self._planner.learn_steps(found):
            raise fault
        self._known = found
        return True
