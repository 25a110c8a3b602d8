"""Load the inputs of a run's next decision into memory: blobs, results of scripts, and whether runs exist."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from weft.core.ids import RunId
from weft.core.run.env import MissingInputs
from weft.errors import Corrupt, NotFound
from weft.ports.store import Directory
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.language import LANGUAGE
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.run.ports import EXISTS, run_key
from weft.runtime.runs import RunTable
from weft.runtime.values import ValueStore
from weft.steps.task import Executor


class Fetcher:
    """Fetches inputs in the background, and then lets the run continue."""

    def __init__(
        self,
        values: ValueStore,
        executor: Executor,
        background: BackgroundTasks,
        runs: RunTable,
        set_aside: Callable[[Actor, BaseException], Awaitable[None]],
        *,
        directory: Directory,
        retry: RetryUntilAvailable,
    ) -> None:
        self._values = values
        self._executor = executor
        self._background = background
        self._runs = runs
        self._set_aside = set_aside
        self._directory = directory
        self._retry_until_available = retry

    def fetch_blobs(self, actor: Actor, digests: set[str]) -> None:
        """Fetch blobs that the code's next fact needs."""
        self._background.spawn(self._fetch_for_code(actor, digests), actor)

    def fetch(self, actor: Actor, missing: MissingInputs) -> None:
        """Fetch the missing inputs of a decision."""
        self._background.spawn(self._fetch(actor, missing), actor)

    async def _fetch_for_code(self, actor: Actor, digests: set[str]) -> None:
        try:
            for digest in sorted(digests):
                await self._values.blob(digest)
        except (Corrupt, NotFound) as error:
            if self._runs.is_current(actor):
                await self._set_aside(actor, error)
            return
        driver = actor.driver
        if driver is not None and actor.ready:
            driver.missing_blobs.clear()
            actor.fetching = True
            asyncio.get_running_loop().call_soon(actor.on_fetched)

    async def _fetch(self, actor: Actor, missing: MissingInputs) -> None:
        for digest in missing.blobs:
            try:
                actor.fetched[digest] = await self._values.blob(digest)
            except (Corrupt, NotFound) as error:
                actor.fetched[digest] = error  # a document may name a missing blob: the run decides what to do
        for run_id in missing.runs:
            row = await self._retry_until_available(partial(self._directory.find, RunId(run_id)))
            actor.fetched[run_key(run_id)] = b"" if row is None else EXISTS
        for question in missing.questions:
            await self._executor.in_thread(partial(LANGUAGE.answer, question))
        asyncio.get_running_loop().call_soon(actor.on_fetched)
