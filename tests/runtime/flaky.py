"""A memory store whose commits can be lost, delayed or refused by a script: what an engine must survive on one host."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Literal

from weft.core.ids import HostId
from weft.errors import Unavailable
from weft.ports.store import Append, Outcome
from weft.stores.memory import MemoryStore
from weft.stores.memory.content import MemoryContent
from weft.stores.memory.log import MemoryLog

Mishap = Literal["fine", "lost before", "lost after", "broken"]


class Script:
    """What happens to the next commits, and what was tried."""

    def __init__(self, *mishaps: Mishap) -> None:
        self.mishaps: deque[Mishap] = deque(mishaps)
        self.batches: list[list[str]] = []
        self.poison: str | None = None
        self.gate: asyncio.Event | None = None


class FlakyLog(MemoryLog):
    """Commits as the script says; everything else works."""

    def __init__(self, content: MemoryContent, script: Script) -> None:
        super().__init__(content)
        self._script = script

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        script = self._script
        script.batches.append([append.uid for append in batch])
        if script.gate is not None:
            await script.gate.wait()
        if script.poison is not None and any(append.uid == script.poison for append in batch):
            raise ValueError("a store that chokes on one run")
        mishap: Mishap = script.mishaps.popleft() if script.mishaps else "fine"
        if mishap == "lost before":
            raise Unavailable("the connection broke before the commit")
        if mishap == "broken":
            raise RuntimeError("a bug in the store")
        outcomes = await super().commit(batch, host)
        if mishap == "lost after":
            raise Unavailable("the connection broke after the commit")
        return outcomes


class FlakyStore(MemoryStore):
    """A memory store with a script."""

    def __init__(self, script: Script, url: str = "memory://") -> None:
        self.script = script
        super().__init__(url)

    def _bind_parts(self, content: MemoryContent) -> None:
        super()._bind_parts(content)
        self.log = FlakyLog(content, self.script)

    def share(self) -> FlakyStore:
        other = FlakyStore(self.script, self.url)
        other._bind_parts(self.content)
        return other
