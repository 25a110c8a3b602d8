"""The machine of a run as it was after any of its events, folded from checkpoints."""

from __future__ import annotations

import asyncio
from bisect import bisect_right, insort

from weft.core import events as e
from weft.core.decider import Machine
from weft.core.run.env import MissingInputs
from weft.ports.store import RunRow
from weft.runtime.programs import new_machine
from weft.runtime.service import RunService
from weft.runtime.unreadable import reading

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

    async def at(self, service: RunService, row: RunRow, seq: int) -> Machine:
        """Return the machine after an event. Raises RunUnreadable, NotFound."""
        while True:
            try:
                return await self._fold(service, row, seq)
            except MissingInputs as missing:
                await service.reader.read_versions(row, missing.versions)

    async def _fold(self, service: RunService, row: RunRow, seq: int) -> Machine:
        index = bisect_right(self._numbers, seq)
        begin = self._numbers[index - 1] if index else 0
        machine = await self._restored(service, row, begin)
        async for stored in service.reader.events(row, after=begin, until=seq):
            with reading(row):
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
        with reading(row):
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
