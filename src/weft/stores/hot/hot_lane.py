"""The lane of hops: one entry of the WAL at a time. Anything but an acknowledgement breaks the WAL for ever.

A WAL that broke is never written again, not even if it is found whole: a server that forgot that it was sealed would
acknowledge what nobody will read. Rules: docs/internals/hot-path.md#rule-14.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from weft.core.ids import RunUid, Seq
from weft.ports.boundary import boundary
from weft.ports.store import Append
from weft.ports.wal_server import WalServer
from weft.stores.hot.entries import ENTRY_APPENDS_MAX, ENTRY_BYTES_MAX, encode, size_max
from weft.stores.hot.owned_runs import OwnedRuns, is_plain
from weft.stores.hot.policy import HotPolicy
from weft.stores.hot.tails import Tails

log = logging.getLogger("weft")

BYTES_MAX: Final = 64 * 1024 * 1024
"""How much may be acknowledged and not drained, before new hops wait."""
ENTRIES_PER_TRIM: Final = 64
SLOW_SECONDS: Final = 0.5
"""An entry that takes longer is worth a line in the log."""
SLOW_PAUSE_SECONDS: Final = 60.0
"""How long there is no second such line."""


class HotLane:
    """Writes hops to the WAL in use."""

    def __init__(self, server: WalServer, tails: Tails, runs: OwnedRuns, policy: HotPolicy) -> None:
        self._server = server
        self._tails = tails
        self._runs = runs
        self._policy = policy
        self._lock = asyncio.Lock()
        self.wal: int | None = None
        """The WAL in use; None while there is none."""
        self.last = 0
        """The number of its last entry."""
        self.broken = ""
        """Why the last WAL broke; empty while it is whole."""
        self._trimmed = 0
        self._trimmed_at = 0
        """The last entry when the WAL was last trimmed."""
        self._quiet_until = 0.0
        """Until when no slow entry is logged."""
        self.on_broken: Callable[[int], None] = lambda *_: None
        self.on_hops: Callable[[], None] = lambda: None
        """Called after hops were acknowledged."""
        self._room = asyncio.Event()
        self._room.set()

    def use(self, wal: int) -> None:
        """Write to this WAL from now on. It is new and empty."""
        self.wal, self.last, self.broken = wal, 0, ""
        self._trimmed = self._trimmed_at = 0

    def is_hot(self, append: Append) -> bool:
        """Return whether an append may go to the WAL in use: it is a plain hop, and its run is attached."""
        wal = self.wal
        return (
            wal is not None
            and is_plain(append)
            and self._is_attached(append, wal)
            and size_max(append) <= ENTRY_BYTES_MAX
        )

    def _is_attached(self, append: Append, wal: int) -> bool:
        run = self._runs.find(append)
        return run is not None and run.wal == wal

    def _are_attached(self, batch: Sequence[Append], wal: int) -> bool:
        runs = self._runs.find_each(batch)
        return runs is not None and all(run.wal == wal for run in runs)

    async def write(self, batch: Sequence[Append], packed: bytes) -> bool:
        """Write one entry. Returns False if it was not acknowledged, and must go to the durable store instead.

        ``packed`` is the batch as bytes. Each append of it was hot when it was asked for.
        """
        async with self._lock:
            if self.is_full():
                await self._wait_for_room()
            wal, entry = self.wal, self.last + 1
            if wal is None or not self._are_attached(batch, wal):
                return False  # things have changed while it waited
            boundary("wal.before")
            clock = asyncio.get_running_loop().time
            began = clock()
            try:
                await self._server.append(wal, entry, packed, self._trim_with(entry))
            except BaseException as error:
                self.break_wal(wal, str(error) or type(error).__name__)
                if isinstance(error, Exception):
                    return False
                raise
            boundary("wal.after")
            if self.wal != wal:
                return False  # somebody has drained it and will not look again
            self.last = entry
            runs = self._runs.find_each(batch)
            if runs is None:
                return False  # the tail of one of them was refused meanwhile: the durable store judges this too
            now = clock()
            if now - began > SLOW_SECONDS:
                self._log_slow(now - began, now)
            for append, run in zip(batch, runs, strict=True):
                run.seq = Seq(append.seq + len(append.events))
                self._tails.add(append, entry, now)
        self.on_hops()
        return True

    async def hold(self, uids: Sequence[RunUid]) -> None:
        """Write no hops of these runs until they are let go. Waits for the one that is under way.

        A hop that is acknowledged after its run was drained and claimed again could not be drained any more.
        """
        async with self._lock:
            self._runs.hold(uids)

    def break_wal(self, wal: int, reason: str) -> None:
        """Never write to this WAL again."""
        if self.wal != wal:
            return
        self.wal, self.broken = None, reason
        self._room.set()
        log.warning(
            "weft: the write-ahead log in Redis broke (%s); commits go to the store until it has a new one", reason
        )
        self.on_broken(wal)

    def _log_slow(self, seconds: float, now: float) -> None:
        if now >= self._quiet_until:
            self._quiet_until = now + SLOW_PAUSE_SECONDS
            log.warning(
                "weft: an entry of the write-ahead log in Redis took %.1f s, and steps wait that long: "
                "Redis, the network or this process is slow",
                seconds,
            )

    # --- bounds ---------------------------------------------------------------------------------------------------

    def is_full(self) -> bool:
        """Return whether new hops must wait, because too much is not drained or has waited for too long."""
        if self._tails.size_bytes >= BYTES_MAX:
            return True
        oldest = self._tails.oldest()
        return oldest is not None and asyncio.get_running_loop().time() - oldest >= self._policy.age_seconds_max

    async def _wait_for_room(self) -> None:
        while self.wal is not None and self.is_full():
            self._room.clear()
            self.on_hops()
            await self._room.wait()

    def on_drained(self) -> None:
        """Let hops go on that wait for room."""
        self._room.set()

    # --- trimming -------------------------------------------------------------------------------------------------

    def _trim_with(self, entry: int) -> int | None:
        """Return up to which entry to trim together with this one; None most of the time."""
        if entry - self._trimmed_at < ENTRIES_PER_TRIM:
            return None
        self._trimmed_at = entry
        upto = self._drained_entry()
        if upto <= self._trimmed:
            return None
        self._trimmed = upto
        return upto

    def _drained_entry(self) -> int:
        """Return the last entry before the oldest one that is not known to be drained."""
        first = self._tails.first_entry()
        return self.last if first is None else first - 1

    async def trim(self) -> None:
        """Trim the WAL while nothing is written to it."""
        if self._lock.locked():
            return
        async with self._lock:
            wal, upto = self.wal, self._drained_entry()
            if wal is None or upto <= self._trimmed:
                return
            try:
                await self._server.trim(wal, upto)
            except BaseException as error:
                self.break_wal(wal, str(error) or type(error).__name__)
                if isinstance(error, Exception):
                    return
                raise
            self._trimmed = upto


def entries(batch: Sequence[Append]) -> Iterator[tuple[Sequence[Append], bytes]]:
    """Return a batch of hops as entries: nearly always one, and parts of the batch if it does not fit into one."""
    if len(batch) <= ENTRY_APPENDS_MAX:
        packed = encode(batch)
        if len(packed) <= ENTRY_BYTES_MAX or len(batch) == 1:
            yield batch, packed
            return
    for part in _parts_of_batch(batch):
        yield part, encode(part)


def _parts_of_batch(batch: Sequence[Append]) -> Iterator[Sequence[Append]]:
    start, total = 0, 0
    for place, append in enumerate(batch):
        size = size_max(append)
        if place > start and (place - start >= ENTRY_APPENDS_MAX or total + size > ENTRY_BYTES_MAX):
            yield batch[start:place]
            start, total = place, 0
        total += size
    yield batch[start:]
