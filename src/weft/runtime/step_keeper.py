"""Keep a host's planner up to date with the steps in the store, and check the health of all steps.

Scripts are checked by compiling them, HTTP steps by a request to their health URL, goals and workflows by the steps
that they would run. Health is shown by ``weft steps`` and ``explain``; it never affects a plan or a dispatch. A step
that cannot be checked stays ``unknown``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from weft.core import values
from weft.core.goal.catalogue import Checkup
from weft.core.goal.definitions import HttpWay, StepDef
from weft.errors import StoreError, WeftError
from weft.goals.load import LoadedSteps, load_steps
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.built_in import BuiltIn
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.runtime.plan_health import PlanHealth, runs_others
from weft.runtime.retries import RetryUntilAvailable
from weft.steps.http.health import check_server_health
from weft.steps.task import Executor

log = logging.getLogger("weft")

CHECKS_AT_ONCE = 16
"""How many URLs are checked at the same time."""


def can_be_checked(step: StepDef) -> bool:
    """Return whether the health of a step can be checked without performing it."""
    if runs_others(step) or any(True for _ in step.scripts()):
        return True
    return isinstance(step.way, HttpWay) and bool(step.way.health)


def check_scripts(step: StepDef) -> Checkup:
    """Check whether all scripts of a step compile here."""
    for place, script, names in step.scripts():
        why = GOAL_LANGUAGES.script(script, names)
        if why is not None:
            return Checkup("unhealthy", f"{'.'.join(place)}: {why}")
    return Checkup("healthy")


class StepKeeper:
    """Learns the steps in the store and checks the health of all steps."""

    def __init__(
        self,
        catalogue: HostCatalogue,
        stored: StoredCatalogue,
        executor: Executor,
        background: BackgroundTasks,
        *,
        built_in: BuiltIn,
        retry: RetryUntilAvailable,
    ) -> None:
        self._catalogue = catalogue
        self.stored = stored
        self._executor = executor
        self._background = background
        self._built_in = built_in
        self._retry_until_available = retry
        self.learned = 0
        """The number of the last change to the store's steps that is known here."""
        self._busy = False

    async def start(self) -> None:
        """Learn the steps in the store. Raises NameTaken or BadStep if they conflict with those of the host."""
        await self._retry_until_available(self.stored.refresh)
        for fault in await self._learn_stored_steps():
            raise fault

    def planned(self) -> Sequence[StepDef]:
        """Return all steps that this host plans with."""
        return self._catalogue.planned()

    async def load(self, document: Any) -> LoadedSteps:
        """Read a document of steps in a thread: its scripts are compiled, which may be slow.

        Raises BadStep, and BadValue or LimitExceeded if the document is not a value that can be stored.
        """

        def work() -> LoadedSteps:
            values.encode(document, what="the document has")
            return load_steps(document, GOAL_LANGUAGES, self._catalogue, self.stored.give_way)

        return await self._executor.in_thread(work)

    async def refresh(self) -> bool:
        """Learn new steps in the store. Returns whether there were any. Steps that conflict are left out and logged."""
        await self.stored.refresh()
        if self.stored.number == self.learned:
            return False
        for fault in await self._learn_stored_steps():
            log.warning("weft: this host ignores a step in the store: %s", fault)
        return True

    async def _learn_stored_steps(self) -> Sequence[WeftError]:
        while True:
            number, learning = self.stored.number, self._catalogue.learning(self.stored.steps)
            await self._executor.in_thread(partial(learning.run, self.stored.give_way))
            if learning.finish():
                self.learned = number
                return learning.faults

    async def begin_round(self) -> None:
        """Check every step that can be checked, in the background, one round at a time."""
        steps = [step for step in self._catalogue.planned() if can_be_checked(step)]
        if steps and not self._busy:
            self._busy = True
            self._background.spawn(self._check_round(steps))

    async def _check_round(self, steps: Sequence[StepDef]) -> None:
        try:
            await self.check_all(steps)
        except StoreError as error:
            log.warning("weft: could not record the health of steps (%s)", error)
        finally:
            self._busy = False

    async def check_all(self, steps: Sequence[StepDef]) -> None:
        """Check all steps once, and record changes."""
        slots = asyncio.Semaphore(CHECKS_AT_ONCE)

        async def one(step: StepDef) -> Checkup:
            async with slots:
                return await self._check_step(step)

        checkups = await asyncio.gather(*(one(step) for step in steps))
        found = dict(zip((step.id for step in steps), checkups, strict=True))
        health = PlanHealth(self._catalogue, {**(await self.stored.catalogue()).health, **found})
        for step in steps:
            if runs_others(step) and found[step.id].status != "unhealthy":
                found[step.id] = health.of(step)
        await self.stored.report_health(found)

    async def _check_step(self, step: StepDef) -> Checkup:
        found = (
            await self._executor.in_thread(lambda: check_scripts(step))
            if any(True for _ in step.scripts())
            else Checkup()
        )
        if found.status == "unhealthy" or not isinstance(step.way, HttpWay) or not step.way.health:
            return found
        status, error = await check_server_health(self._built_in.client, step.way.health)
        return Checkup(status, error)
