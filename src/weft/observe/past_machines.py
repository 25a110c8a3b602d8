"""The machine of a run as it was after any of its events, folded from checkpoints."""

from __future__ import annotations

import asyncio
from bisect import bisect_right, insort
from collections.abc import Callable
from typing import TypeVar

from weft.core import events as e
from weft.core.machine import Machine
from weft.core.run.env import MissingInputs
from weft.ports.store import RunRow
from weft.runtime.programs import new_machine
from weft.runtime.service import RunService
from weft.runtime.unreadable import naming_run_in_errors

T = TypeVar("T")

EVENTS_BETWEEN = 1_000
"""How many events lie between two checkpoints, until those are too large."""
BYTES_MAX = 16 * 2**20
EVENTS_PER_TURN = 200


class PastMachines:
    """Folds the log of one run up to an event. Keeps snapshots on the way, within a limit of bytes."""

    def __init__(self, between: int = EVENTS_BETWEEN) -> None:
        self._checkpoints: dict[int, bytes] = {}
        self._numbers: list[int] = []
        self._bytes = 0
        self._between = between
        self._machine: Machine | None = None
        """The machine where it was last read."""

    async def at(self, service: RunService, row: RunRow, seq: int) -> Machine:
        """Return the machine after an event. Raises RunUnreadable, NotFound."""
        while True:
            try:
                return await self._fold(service, row, seq)
            except MissingInputs as missing:
                await service.reader.read_versions(row, missing.versions)

    async def around(
        self, service: RunService, row: RunRow, seq: int, read: Callable[[Machine], T]
    ) -> tuple[T | None, T]:
        """Return what ``read`` finds in the machine before and after an event; None before the first event.

        Raises RunUnreadable, NotFound.
        """
        before = await self.read(service, row, seq - 1, read) if seq > 1 else None
        return before, await self.read(service, row, seq, read)

    async def read(self, service: RunService, row: RunRow, seq: int, read: Callable[[Machine], T]) -> T:
        """Return what ``read`` finds in the machine after an event. Going on from there is cheap.

        Raises RunUnreadable, NotFound.
        """
        if self._machine is None or not self._is_near(self._machine.state.seq, seq):
            self._machine = await self.at(service, row, seq)
        machine, self._machine = self._machine, None  # dropped if an event cannot be applied
        while machine.state.seq < seq:
            try:
                await self._advance(service, row, machine, seq)
            except MissingInputs as missing:
                await service.reader.read_versions(row, missing.versions)
        self._machine = machine
        return read(machine)

    def _is_near(self, here: int, seq: int) -> bool:
        """Return whether going on from an event is cheaper than from the last checkpoint before the other one."""
        index = bisect_right(self._numbers, seq)
        return (self._numbers[index - 1] if index else 0) <= here <= seq

    async def _advance(self, service: RunService, row: RunRow, machine: Machine, seq: int) -> None:
        async for stored in service.reader.events(row, after=machine.state.seq, until=seq):
            with naming_run_in_errors(row):
                machine.evolve(e.decode(stored.body), at=stored.at)
            last = self._numbers[-1] if self._numbers else 0
            if stored.seq - last >= self._between:
                self._keep(stored.seq, machine.snapshot())
            if not stored.seq % EVENTS_PER_TURN:
                await asyncio.sleep(0)  # a long log must not block the loop

    async def _fold(self, service: RunService, row: RunRow, seq: int) -> Machine:
        index = bisect_right(self._numbers, seq)
        begin = self._numbers[index - 1] if index else 0
        machine = await self._restored(service, row, begin)
        async for stored in service.reader.events(row, after=begin, until=seq):
            with naming_run_in_errors(row):
                machine.evolve(e.decode(stored.body), at=stored.at)
            if stored.seq - begin >= self._between:
                self._keep(stored.seq, machine.snapshot())
                begin = stored.seq
            if not stored.seq % EVENTS_PER_TURN:
                await asyncio.sleep(0)  # a long log must not block the loop
        return machine

    async def _restored(self, service: RunService, row: RunRow, begin: int) -> Machine:
        snapshot = self._checkpoints.get(begin)
        if snapshot is None:
            first = [stored async for stored in service.reader.events(row, until=1)]
            return await service.reader.empty_machine(row, row.uid, first)
        with naming_run_in_errors(row):
            return new_machine(row.style, await service.reader.program(row), row.uid, snapshot)

    def _keep(self, seq: int, snapshot: bytes) -> None:
        if seq in self._checkpoints:
            return
        self._checkpoints[seq] = snapshot
        insort(self._numbers, seq)
        self._bytes += len(snapshot)
        while self._bytes > BYTES_MAX and len(self._numbers) > 1:
            self._between *= 2
            for number in self._numbers[::2]:
                self._bytes -= len(self._checkpoints.pop(number))
            self._numbers = self._numbers[1::2]
