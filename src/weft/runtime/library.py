"""Publish a host's workflows that are data to the store, and load those of other hosts.

A run continues with the version it began with, on any host of the store. So a host also loads versions that others
published after it started: it polls for new names, and reads only new definitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial

from weft.errors import NotFound, WeftError
from weft.ports.clock import Clock
from weft.ports.definitions import Definition, Definitions
from weft.ports.store import RunRow
from weft.runtime.catalogue import Callee, HostCatalogue
from weft.runtime.programs import is_graph, store_definition
from weft.runtime.retries import RetryUntilAvailable

log = logging.getLogger("weft")

STYLE = "graph"


class Library:
    """Publishes the workflows of this host that are data, and learns those in the store."""

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
        """``steps_learned`` returns the number of the last change to the store's steps that is known here."""
        self._catalogue = catalogue
        self._definitions = definitions
        self._clock = clock
        self._retry_until_available = retry
        self._scan_seconds = scan_seconds
        self._steps_learned = steps_learned
        self._published: set[tuple[str, str]] = set()
        self._all_published: Sequence[Definition] | None = None
        """What the catalogue returned when all of it was published the last time."""
        self._seen: set[tuple[str, str]] = set()
        self._refresh_at = 0.0
        self._missing_steps: set[tuple[str, str]] = set()
        """Graphs with steps that this host does not have yet."""
        self._steps_known = 0

    async def publish_definitions(self) -> None:
        """Store the definitions of this host's workflows, and learn their other versions."""
        definitions = self._catalogue.definitions(self._clock.now_ms())
        if definitions is self._all_published:
            return  # a start must not look at every graph
        for definition in definitions:
            if (definition.name, definition.version) in self._published:
                continue
            if (await self._learn_versions(definition.name)).get(definition.version) != definition.origin:
                await self._retry_until_available(partial(store_definition, self._definitions, definition))
                await self._learn_versions(definition.name)
            self._published.add((definition.name, definition.version))
        self._all_published = definitions

    async def refresh(self) -> None:
        """Learn definitions that other hosts published since the last call. Does nothing if that was recent."""
        now = self._clock.monotonic()
        if now < self._refresh_at:
            return
        self._refresh_at = now + self._scan_seconds
        own = {name for name, _ in self._published}
        if self._steps_learned() != self._steps_known:
            self._steps_known = self._steps_learned()
            self._seen -= self._missing_steps
            self._missing_steps.clear()
        for key in await self._definitions.names(STYLE):
            if key in self._seen:
                continue
            definition = await self._definitions.get(*key)
            self._seen.add(key)
            if definition is not None:
                self._learn_definition(definition, own)

    async def resolve(self, row: RunRow) -> Callee | None:
        """Resolve the name of a workflow: to one that the app registers, or to the newest graph in the store."""
        found = self._catalogue.resolve(row.workflow, row.version)
        if found is not None or row.version:
            return found
        version = await self.newest(row.workflow)
        return Callee(version, "graph") if version is not None else None

    async def newest(self, name: str) -> str | None:
        """Return the version of the newest graph with this name that was hosted and that this host can run."""
        found = await self._retry_until_available(partial(self._definitions.versions, name))
        graphs = [definition for definition in found if is_graph(definition) and definition.origin == "hosted"]
        for definition in graphs:
            if (definition.name, definition.version) not in self._seen:
                self._seen.add((definition.name, definition.version))
                self._learn_definition(definition, ())
        known = [one.version for one in graphs if self._catalogue.program(name, one.version) is not None]
        return known[-1] if known else None

    async def learn_version(self, name: str, version: str) -> None:
        """Learn one version from the store, because a log names it. Raises NotFound if it is not there."""
        if self._catalogue.program(name, version) is not None:
            return
        found = await self._retry_until_available(partial(self._definitions.get, name, version))
        if found is None:
            raise NotFound(f"Version {version} of {name} is not in the store.", code="run.not_found")
        self._catalogue.learn(found)

    def _learn_definition(self, definition: Definition, own: Collection[str]) -> None:
        catalogue = self._catalogue
        try:
            if definition.name in own:
                catalogue.learn(definition)
            elif not catalogue.learn_other(definition):
                self._missing_steps.add((definition.name, definition.version))
        except WeftError as error:
            # Runs of this version wait for a host that can read it; all other runs continue.
            log.warning("weft: this host cannot run %s %s: %s", definition.name, definition.version, error)

    async def _learn_versions(self, name: str) -> dict[str, str]:
        """Learn all versions of a workflow in the store. Returns them with their origins."""
        found = await self._retry_until_available(partial(self._definitions.versions, name))
        for definition in found:
            self._catalogue.learn(definition)
            self._seen.add((definition.name, definition.version))
        return {definition.version: definition.origin for definition in found}
