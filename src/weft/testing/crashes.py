"""Crash a simulated process as planned: at the result of a step, or at the n-th write of a world."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec

from weft.core import events as e
from weft.core.ids import EntryId, RunUid
from weft.errors import UsageError
from weft.ports.store import Append
from weft.testing.fakes import CallBook
from weft.testing.faults import StoreCall
from weft.testing.loop import PROCESS

When = Literal["before", "after"]


class _Plan(msgspec.Struct):
    at: str
    when: When
    times: int


class Crashes:
    """The crashes that are planned in one world."""

    def __init__(self, book: CallBook) -> None:
        self._book = book
        self._plans: list[_Plan] = []
        self.writes: list[str] = []
        """The name of every write so far."""
        self.at_write: tuple[int, When] | None = None
        """The index of the write at which the process dies, and whether before or after it."""

    def plan(self, at: str, when: When, times: int) -> None:
        if when not in ("before", "after"):
            raise UsageError(f"when={when!r} is not one of before, after.")
        self._plans.append(_Plan(at, when, times))

    def pending(self) -> list[str]:
        """Return the planned crashes that have not happened."""
        return [f"{plan.when} {plan.at}" for plan in self._plans if plan.times > 0]

    async def carry(self, call: StoreCall) -> Any:
        """Carry out a call of the store. The process dies before or after it if that is planned."""
        if not call.is_write:
            return call.apply()
        if self._is_due(call, "before"):
            return await _die()
        result = call.apply()
        if self._is_due(call, "after"):
            return await _die()
        return result

    def _is_due(self, call: StoreCall, when: When) -> bool:
        """Return whether the process is to die before or after this call."""
        if when == "before":
            self.writes.append(call.what)
        if self.at_write == (len(self.writes) - 1, when):
            return True
        plans = [plan for plan in self._plans if plan.times > 0 and plan.when == when]
        if not plans or call.what != "log.commit":
            return False
        places = [place for append in call.subject for place in self._results(append)]
        for plan in plans:
            if any(plan.at in place for place in places):
                plan.times -= 1
                return True
        return False

    def _results(self, append: Append) -> list[tuple[str, str]]:
        """Return the step and location of the tasks that end with this append."""
        ended = []
        for stored in append.events:
            event = e.decode(stored.body)
            if isinstance(event, e.TaskSucceeded) or (isinstance(event, e.TaskFailed) and not event.retry_at):
                ended.append(self._book.places.get((RunUid(append.uid), EntryId(event.task)), ("", "")))
        return ended


async def _die() -> Any:
    """End the current process. Never returns."""
    PROCESS.get().die()
    return await asyncio.get_running_loop().create_future()
