"""A store in memory, for tests, the simulator and experiments.

It starts no thread, and none of its methods suspends, so its caller decides the order of everything. Its content
outlives an engine: pass the same store, or another that shares its content, to the next engine.
"""

from __future__ import annotations

from weft.ports.store import StoreDetails
from weft.stores.memory.access import MemoryAccess
from weft.stores.memory.blobs import MemoryBlobs
from weft.stores.memory.budgets import MemoryBudgets
from weft.stores.memory.content import MemoryContent
from weft.stores.memory.definitions import MemoryDefinitions
from weft.stores.memory.directory import MemoryDirectory
from weft.stores.memory.holds import MemoryHolds
from weft.stores.memory.hosts import MemoryHosts
from weft.stores.memory.inboxes import MemoryInboxes
from weft.stores.memory.log import MemoryLog
from weft.stores.memory.memos import MemoryMemos
from weft.stores.memory.policies import MemoryPolicies
from weft.stores.memory.retention import MemoryRetention
from weft.stores.memory.saved_views import MemorySavedViews
from weft.stores.memory.starts import MemoryStarts
from weft.stores.memory.step_logs import MemoryStepLogs
from weft.stores.memory.streams import MemoryStreams
from weft.stores.memory.tags import MemoryTags
from weft.stores.memory.tasks import MemoryTasks
from weft.stores.memory.tool_pins import MemoryToolPins
from weft.stores.memory.wals import MemoryWals
from weft.stores.memory.web_sessions import MemoryWebSessions

__all__ = ["MemoryStore"]


class MemoryStore:
    """All ports over one ``MemoryContent``."""

    def __init__(self, url: str = "memory://") -> None:
        self.url = url
        self.offset_ms = 0
        self._bind_parts(MemoryContent())

    def _bind_parts(self, content: MemoryContent) -> None:
        self.content = content
        self.log = MemoryLog(content)
        self.directory = MemoryDirectory(content)
        self.inboxes = MemoryInboxes(content, self.directory)
        self.hosts = MemoryHosts(content)
        self.blobs = MemoryBlobs(content)
        self.tasks = MemoryTasks(content)
        self.definitions = MemoryDefinitions(content)
        self.tags = MemoryTags(content)
        self.streams = MemoryStreams(content)
        self.step_logs = MemoryStepLogs(content)
        self.access = MemoryAccess(content)
        self.memos = MemoryMemos(content)
        self.retention = MemoryRetention(content)
        self.holds = MemoryHolds(content)
        self.saved_views = MemorySavedViews(content)
        self.web_sessions = MemoryWebSessions(content)
        self.starts = MemoryStarts(content)
        self.policies = MemoryPolicies(content)
        self.budgets = MemoryBudgets(content)
        self.tool_pins = MemoryToolPins(content)
        self.wals = MemoryWals(content)

    def share(self) -> MemoryStore:
        """Return a store over the same content, as another process would open it."""
        other = MemoryStore(self.url)
        other._bind_parts(self.content)
        return other

    async def details(self) -> StoreDetails:
        return StoreDetails(kind="memory", schema=0, size_bytes=None)

    async def open(self) -> None:
        """Do nothing: there is nothing to connect to."""

    async def close(self) -> None:
        """Do nothing: the content stays in memory."""
