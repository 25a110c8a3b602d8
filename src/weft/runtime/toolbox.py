"""The tools that Weft has itself, on a host: what they need of its store."""

from __future__ import annotations

from collections.abc import Callable

from weft.agents.toolbox.bodies import Toolbox
from weft.agents.toolbox.openapi_calls import OpenApiCalls
from weft.agents.toolbox.results import ToolResults
from weft.cache import BoundedCache
from weft.core.ids import RunUid, Seq
from weft.core.values import blobs_in
from weft.ports.store import RunLog
from weft.runtime.stored_tools import StoredTools
from weft.runtime.tool_settings import ToolStores
from weft.runtime.values import ValueStore
from weft.steps.http.client import HttpClient
from weft.steps.pipelines.run import PipelineRunner

PAGE = 500
KNOWN_MAX = 10_000


class RunReferences:
    """Says whether the log of a run refers to a blob. What it found once is remembered."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._known: BoundedCache[tuple[str, str], bool] = BoundedCache(KNOWN_MAX)

    async def holds(self, uid: str, digest: str) -> bool:
        """Return whether a result in the log of the run refers to the blob."""
        if self._known.get((uid, digest)):
            return True
        after = 0
        while True:
            events = await self._log.events(RunUid(uid), after=Seq(after), limit=PAGE)
            if any(digest in _blobs_of_event(event.body) for event in events):
                self._known.put((uid, digest), True)
                return True
            if len(events) < PAGE:
                return False
            after = events[-1].seq


def _blobs_of_event(event: bytes) -> list[str]:
    """Return the blobs to which an event refers. The input of a task does not count: a model may have written it."""
    return [] if b'"task_scheduled"' in event[:80] else blobs_in(event)


def make_toolbox(
    runner: PipelineRunner, values: ValueStore, stores: ToolStores, client: Callable[[], HttpClient]
) -> Toolbox:
    """Make the tools of a host."""
    stored = StoredTools(stores.definitions, stores.clock, stores.settings)
    results = ToolResults(values.put, values.blob, RunReferences(stores.log).holds)
    return Toolbox(runner, results, stored, OpenApiCalls(client, stores.clock))
