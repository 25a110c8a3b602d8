"""A store in memory, for tests, the simulator and experiments.

It starts no thread, and none of its methods suspends, so its caller decides the order of everything. Its content
outlives an engine: pass the same store, or another that shares its content, to the next engine.
"""

from __future__ import annotations

from weft.stores.memory.access import MemoryAccess
from weft.stores.memory.blobs import MemoryBlobs
from weft.stores.memory.content import MemoryContent
from weft.stores.memory.definitions import MemoryDefinitions
from weft.stores.memory.directory import MemoryDirectory
from weft.stores.memory.holds import MemoryHolds
from weft.stores.memory.hosts import MemoryHosts
from weft.stores.memory.inboxes import MemoryInboxes
from weft.stores.memory.log import MemoryLog
from weft.stores.memory.memos import MemoryMemos
from weft.stores.memory.retention import MemoryRetention
from weft.stores.memory.streams import MemoryStreams
from weft.stores.memory.tags import MemoryTags
from weft.stores.memory.tasks import MemoryTasks

__all__ = ["MemoryStore"]


class MemoryStore:
    """All ports over one ``MemoryContent``."""

    def __init__(self, url: str = "memory://") -> None:
        self.url = url
        self.offset_ms = 0
        self._bind(MemoryContent())

    def _bind(self, content: MemoryContent) -> None:
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
        self.access = MemoryAccess(content)
        self.memos = MemoryMemos(content)
        self.retention = MemoryRetention(content)
        self.holds = MemoryHolds(content)

    def share(self) -> MemoryStore:
        """Return a store over the same content, as another process would open it."""
        other = MemoryStore(self.url)
        other._bind(self.content)
        return other

    async def open(self) -> None:
        """Do nothing: there is nothing to connect to."""

    async def close(self) -> None:
        """Do nothing: the content stays in memory."""
