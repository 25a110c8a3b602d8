"""The runs in memory: actors by uid and by id, the limit on their number, and the callers that wait for runs to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from weft.core.ids import RunId, RunUid
from weft.core.run.state import State
from weft.errors import Failure
from weft.ports.store import Directory
from weft.runtime.run.actor import Actor


class Ending(msgspec.Struct, frozen=True):
    """How a run ended. ``output`` is in the form of the log."""

    status: str
    output: bytes
    failure: Failure | None
    reason: str = ""


class RunTable:
    """The table of all runs that this host has in memory."""

    def __init__(self, directory: Directory, resident_max: int, on_removed: Callable[[RunUid], None]) -> None:
        """``on_removed`` is called when a run leaves memory."""
        self._directory = directory
        self._resident_max = resident_max
        self._on_removed = on_removed
        self.actors: dict[RunUid, Actor] = {}
        self.by_id: dict[RunId, Actor] = {}
        self.misplaced: set[RunUid] = set()
        """Runs in memory whose version this host does not have. They leave when their work here has ended."""
        self.slotted: set[RunUid] = set()
        """Runs in memory that have a slot: when one ends, another run with this slot may begin."""
        self._arrived: set[RunUid] | None = None
        self._waiting: dict[RunUid, list[asyncio.Future[Ending | None]]] = {}

    # --- runs -----------------------------------------------------------------------------------------------------

    def add(self, actor: Actor) -> None:
        if self._arrived is not None:
            self._arrived.add(actor.uid)
        self.actors[actor.uid] = actor
        self.by_id[actor.id] = actor

    def remove(self, actor: Actor) -> None:
        """Remove a run from memory."""
        actor.close()
        self._on_removed(actor.uid)
        self.misplaced.discard(actor.uid)
        self.slotted.discard(actor.uid)
        if self.actors.get(actor.uid) is actor:
            del self.actors[actor.uid]
        if self.by_id.get(actor.id) is actor:
            del self.by_id[actor.id]

    def note_arrival(self, uid: RunUid) -> None:
        """Note that a run has been added, or has read its inbox."""
        if self._arrived is not None:
            self._arrived.add(uid)

    @contextmanager
    def note_arrivals(self) -> Iterator[set[RunUid]]:
        """Collect the runs that arrive meanwhile: what was read before does not hold for them. One at a time."""
        arrived = self._arrived = set[RunUid]()
        try:
            yield arrived
        finally:
            self._arrived = None

    def clear(self) -> None:
        """Remove every run from memory at once, because the host stops."""
        for actor in list(self.actors.values()):
            actor.close()
        self.actors.clear()
        self.by_id.clear()

    def is_current(self, actor: Actor) -> bool:
        """Return whether this actor is the one in memory: its run was not reloaded or removed since."""
        return self.actors.get(actor.uid) is actor

    def state_of(self, uid: RunUid) -> State | None:
        """Return the state of a run that is in memory and ready."""
        actor = self.actors.get(uid)
        return actor.machine.state if actor is not None and actor.ready else None

    def has_work(self) -> bool:
        """Return whether any run has something to decide or to commit."""
        return any(not actor.is_idle() and actor.ready for actor in self.actors.values())

    # --- capacity -------------------------------------------------------------------------------------------------

    def room(self) -> int:
        """Return how many more runs may be loaded."""
        return max(0, self._resident_max - len(self.actors))

    def surplus(self) -> int:
        """Return how many runs are in memory above the limit; negative below it."""
        return len(self.actors) - self._resident_max

    def is_full(self) -> bool:
        """Return whether a new run must wait outside memory.

        A part of memory is reserved for new runs, so that loaded runs do not block new ones.
        """
        return len(self.actors) >= self._resident_max * 5 // 4

    # --- ends -----------------------------------------------------------------------------------------------------

    async def wait_for_end(self, uid: RunUid, *, timeout: float | None = None) -> Ending | None:
        """Wait until a run has ended, on any host. Returns how it ended if it ended here. Raises TimeoutError."""
        future: asyncio.Future[Ending | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(uid, []).append(future)
        try:
            if uid not in self.actors:
                row = await self._directory.row(uid)
                if row is None or row.ended_at is not None:
                    return None
            if timeout is None:
                return await future
            async with asyncio.timeout(timeout):
                return await future
        finally:
            waiting = self._waiting.get(uid, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._waiting.pop(uid, None)

    def awaited(self) -> list[RunUid]:
        """Return the runs that callers here wait for."""
        return list(self._waiting)

    def on_ended(self, uid: RunUid, ending: Ending | None = None) -> None:
        """Tell all waiting callers that a run has ended."""
        for future in self._waiting.pop(uid, ()):
            if not future.done():
                future.set_result(ending)
