"""A host and the steps of its store: plans with those that are registered there, and looks after the health of all.

Health: scripts by compiling them, HTTP by asking the address that the step names, goals and workflows by the steps
that they would run. It informs `weft steps` and
`explain`; it never decides a plan or a hand-out, and a step that nobody can look at stays `unknown`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from weft.core.goal.catalogue import Checkup
from weft.core.goal.definitions import HttpWay, StepDef
from weft.errors import StoreError, WeftError
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.built_in import BuiltIn
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.runtime.plan_health import PlanHealth, runs_others
from weft.runtime.retries import RetryUntilAvailable
from weft.steps.base import Executor
from weft.steps.http.health import probe

log = logging.getLogger("weft")

AT_ONCE = 16
"""So many addresses are asked at the same time."""


def can_be_checked(step: StepDef) -> bool:
    """Whether anything can be found out about a step without performing it."""
    if runs_others(step) or any(True for _ in step.scripts()):
        return True
    return isinstance(step.way, HttpWay) and bool(step.way.health)


def compiled(step: StepDef) -> Checkup:
    """Whether all scripts of a step can be read here."""
    for place, script, names in step.scripts():
        why = GOAL_LANGUAGES.script(script, names)
        if why is not None:
            return Checkup("unhealthy", f"{'.'.join(place)}: {why}")
    return Checkup("healthy")


class StepKeeper:
    """Learns the steps of the store and looks after the health of all."""

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
        """The last change of the store's steps that is known here."""
        self._busy = False

    async def start(self) -> None:
        """Plan with what the store has. Raises NameTaken, BadStep: the host and the store contradict each other."""
        await self._retry_until_available(self.stored.refresh)
        for fault in self._learn():
            raise fault

    async def refresh(self) -> bool:
        """Plan with what the store has now; whether that is new. What does not fit is left out, and said."""
        await self.stored.refresh()
        if self.stored.number == self.learned:
            return False
        for fault in self._learn():
            log.warning("weft: a step of the store is left out here: %s", fault)
        return True

    def _learn(self) -> Sequence[WeftError]:
        self.learned = self.stored.number
        return self._catalogue.learn_steps(self.stored.steps)

    async def begin_round(self) -> None:
        """Look at every step that can be looked at, beside everything else; one round at a time."""
        steps = [step for step in self._catalogue.planned() if can_be_checked(step)]
        if steps and not self._busy:
            self._busy = True
            self._background.spawn(self._round(steps))

    async def _round(self, steps: Sequence[StepDef]) -> None:
        try:
            await self.look(steps)
        except StoreError as error:
            log.warning("weft: the health of steps could not be noted (%s)", error)
        finally:
            self._busy = False

    async def look(self, steps: Sequence[StepDef]) -> None:
        """One round: ask, and note what changed."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(step: StepDef) -> Checkup:
            async with slots:
                return await self._look_at(step)

        looked = await asyncio.gather(*(one(step) for step in steps))
        found = dict(zip((step.id for step in steps), looked, strict=True))
        health = PlanHealth(self._catalogue, {**(await self.stored.catalogue()).health, **found})
        for step in steps:
            if runs_others(step) and found[step.id].status != "unhealthy":
                found[step.id] = health.of(step)
        await self.stored.report_health(found)

    async def _look_at(self, step: StepDef) -> Checkup:
        found = (
            await self._executor.in_thread(lambda: compiled(step)) if any(True for _ in step.scripts()) else Checkup()
        )
        if found.status == "unhealthy" or not isinstance(step.way, HttpWay) or not step.way.health:
            return found
        status, error = await probe(self._built_in.client, step.way.health)
        return Checkup(status, error)
