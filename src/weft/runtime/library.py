"""A host and the workflows of its store that are data: it keeps its own there, and learns those of others.

A run goes on with the version it began with, on any host of the store. So a host also learns versions that others
published after it started: it looks for new names, and reads only what it has not seen.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection
from functools import partial

from weft.errors import Conflict, WeftError
from weft.ports.clock import Clock
from weft.ports.store import Definition, Definitions, RunRow
from weft.runtime.catalogue import Callee, HostCatalogue
from weft.runtime.programs import is_graph
from weft.runtime.retries import RetryUntilAvailable

log = logging.getLogger("weft")

STYLE = "graph"


class Library:
    """Publishes and learns workflows that are data."""

    def __init__(
        self,
        catalogue: HostCatalogue,
        definitions: Definitions,
        clock: Clock,
        retry: RetryUntilAvailable,
        *,
        scan_seconds: float,
        steps_learned: Callable[[], int],
    ) -> None:
        """``steps_learned``: the number of the last change of the store's steps that is known here."""
        self._catalogue = catalogue
        self._definitions = definitions
        self._clock = clock
        self._retry_until_available = retry
        self._scan_seconds = scan_seconds
        self._steps_learned = steps_learned
        self._published: set[tuple[str, str]] = set()
        self._seen: set[tuple[str, str]] = set()
        self._look_at = 0.0
        self._left_out: set[tuple[str, str]] = set()
        """Graphs that name steps which nobody here has, yet."""
        self._steps_known = 0

    async def publish(self) -> None:
        """Keep in the store what is data of the workflows here, and learn their other versions."""
        for definition in self._catalogue.definitions(self._clock.now_ms()):
            if (definition.name, definition.version) in self._published:
                continue
            if definition.version not in await self._learn_versions(definition.name):
                await self._retry_until_available(partial(self._keep, definition))
                await self._learn_versions(definition.name)
            self._published.add((definition.name, definition.version))

    async def refresh(self) -> None:
        """Learn what others published since the last look; now and then."""
        now = self._clock.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + self._scan_seconds
        own = {name for name, _ in self._published}
        if self._steps_learned() != self._steps_known:
            self._steps_known = self._steps_learned()
            self._seen -= self._left_out
            self._left_out.clear()
        for key in await self._definitions.names(STYLE):
            if key in self._seen:
                continue
            definition = await self._definitions.get(*key)
            self._seen.add(key)
            if definition is not None:
                self._learn(definition, own)

    async def resolve(self, row: RunRow) -> Callee | None:
        """Return what the name of a workflow means here: what the app registers, or the newest graph of the store."""
        found = self._catalogue.resolve(row.workflow, row.version)
        if found is not None or row.version:
            return found
        version = await self.newest(row.workflow)
        return Callee(version, "graph") if version is not None else None

    async def newest(self, name: str) -> str | None:
        """The newest graph of this name in the store that this host can run."""
        found = await self._retry_until_available(partial(self._definitions.versions, name))
        graphs = [definition for definition in found if is_graph(definition)]
        for definition in graphs:
            if (definition.name, definition.version) not in self._seen:
                self._seen.add((definition.name, definition.version))
                self._learn(definition, ())
        known = [one.version for one in graphs if self._catalogue.program(name, one.version) is not None]
        return known[-1] if known else None

    def _learn(self, definition: Definition, own: Collection[str]) -> None:
        catalogue = self._catalogue
        try:
            if definition.name in own:
                catalogue.learn(definition)
            elif not catalogue.learn_other(definition):
                self._left_out.add((definition.name, definition.version))
        except WeftError as error:
            # Its runs wait for a host that can read it; all others go on.
            log.warning("weft: %s %s is left out here: %s", definition.name, definition.version, error)

    async def _learn_versions(self, name: str) -> set[str]:
        """The versions of a workflow that are in the store, known here from now on."""
        found = await self._retry_until_available(partial(self._definitions.versions, name))
        for definition in found:
            self._catalogue.learn(definition)
            self._seen.add((definition.name, definition.version))
        return {definition.version for definition in found}

    async def _keep(self, definition: Definition) -> None:
        """Its version names its content: of two documents that say the same in other words, the first one stays."""
        with contextlib.suppress(Conflict):
            await self._definitions.put(definition)
