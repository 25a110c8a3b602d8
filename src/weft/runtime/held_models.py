"""Models whose providers asked to wait. Their queues are held on all hosts until then.

The store keeps a hold as a memo that expires when it ends. A host knows its own holds at once, and those of others
after its next look at the queues. Losing a hold costs one more refusal, no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

from weft.core.ids import Millis, RunId
from weft.ports.clock import Clock
from weft.ports.memos import Memo, Memos

MODEL_QUEUE = "model."
"""The beginning of the name of a model's queue."""
SPREAD_MS = 1_000
"""Calls that waited begin within this time, so that they do not all arrive at once."""
_KEY = "model/hold/"


async def held_until(memos: Memos, model: str, now: Millis) -> Millis | None:
    """Return until when the queue of a model is held; None if it is not."""
    memo = await hold_of(memos, model, now)
    return memo.until if memo is not None else None


async def hold_of(memos: Memos, model: str, now: Millis) -> Memo | None:
    """Return the hold of a model's queue, with its beginning and its end; None if it is not held."""
    return await memos.get(_KEY + model, now=now)


class HeldModels:
    """Knows which queues of models are held, and until when."""

    def __init__(self, memos: Memos, clock: Clock, names: Callable[[], Sequence[str]]) -> None:
        """``names`` returns the models of this host."""
        self._memos = memos
        self._clock = clock
        self._names = names
        self._until: dict[str, Millis] = {}
        self.any = False
        """Whether any queue is held, as far as this host knows."""

    def due(self, queue: str, key: str) -> Millis | None:
        """Return when a task of a queue that is held may begin; None if it may now. Tasks with other keys differ."""
        until = self._until.get(queue)
        if until is None:
            return None
        if until <= self._clock.now_ms():
            self._forget_hold(queue)
            return None
        return Millis(until + crc32(key.encode()) % SPREAD_MS)

    def until(self, model: str) -> Millis | None:
        """Return until when the calls of a model are held; None if they are not."""
        queue = MODEL_QUEUE + model
        return self._until.get(queue) if self.due(queue, "") is not None else None

    def queues(self) -> list[str]:
        """Return the queues that are held now."""
        return [queue for queue in list(self._until) if self.due(queue, "") is not None]

    async def hold(self, model: str, wait_ms: int) -> None:
        """Hold the queue of a model on all hosts for at least this long. A longer hold stays as it is."""
        now = self._clock.now_ms()
        until = Millis(now + wait_ms)
        if until <= self._until.get(MODEL_QUEUE + model, Millis(0)):
            return
        self._note_hold(model, until)
        await self._memos.put(Memo(key=_KEY + model, output=b"%d" % until, run=RunId(""), at=now, until=until))

    async def refresh(self) -> None:
        """Read the holds that other hosts have made."""
        now = self._clock.now_ms()
        for model in self._names():
            until = await held_until(self._memos, model, now)
            if until is not None:
                self._note_hold(model, max(until, self._until.get(MODEL_QUEUE + model, Millis(0))))

    def _note_hold(self, model: str, until: Millis) -> None:
        self._until[MODEL_QUEUE + model] = until
        self.any = True

    def _forget_hold(self, queue: str) -> None:
        self._until.pop(queue, None)
        self.any = bool(self._until)
