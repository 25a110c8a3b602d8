"""A WAL server in memory, for tests that need no process.

It can be away, refuse writes, be emptied, and go back to what it held earlier, as a server that lost power does.
It does not play requests that are late or answers that are lost: a subclass that needs these overrides ``_arrive``
and ``_leave``.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Final, NoReturn

import msgspec

from weft.errors import Unavailable
from weft.ports.wal_server import ServerFacts, WalBroken

FACTS: Final = ServerFacts(
    server="memory",
    version="7.0.0",
    protocol="7.0.0",
    role="master",
    aof=True,
    appendfsync="everysec",
    replicas=0,
    maxmemory_policy="noeviction",
)


class Held(msgspec.Struct):
    """A WAL as the server holds it."""

    head: int = 0
    sealed: bool = False
    entries: dict[int, bytes] = msgspec.field(default_factory=dict)


class Disk(msgspec.Struct):
    """All that a server holds. Several connections share one."""

    wals: dict[int, Held] = msgspec.field(default_factory=dict)
    identity: str | None = None
    facts: ServerFacts = FACTS
    away: bool = False
    """Nobody gets an answer."""
    written: list[bytes] = msgspec.field(default_factory=list)
    """Every entry that was ever written, also what is trimmed by now."""
    refusal: str = ""
    """What the server says to every write, such as "OOM" or "READONLY"; empty if it takes them."""

    def save(self) -> "Disk":
        """Return a copy, to go back to."""
        return deepcopy(self)

    def restore(self, saved: "Disk") -> None:
        """Go back to what was saved: everything after it is lost."""
        self.wals, self.identity = deepcopy(saved.wals), saved.identity

    def empty(self) -> None:
        """Forget everything, as FLUSHALL does."""
        self.wals, self.identity = {}, None


class MemoryWalServer:
    """One process's connection to a ``Disk``. Implements the port ``WalServer``."""

    url = "memory://"

    def __init__(self, disk: Disk | None = None) -> None:
        self.disk = disk or Disk()
        self._writes_to: int | None = None

    # --- whose server it is ------------------------------------------------------------------------------------------

    async def facts(self) -> ServerFacts:
        await self._arrive()
        return self.disk.facts

    async def identity(self) -> str | None:
        await self._arrive()
        return self.disk.identity

    async def set_identity(self, value: str, *, replace: str | None = None) -> str:
        await self._arrive()
        self._check_writable()
        if self.disk.identity == replace:
            self.disk.identity = value
        await self._leave()
        return self.disk.identity or ""

    # --- one's own WAL -----------------------------------------------------------------------------------------------

    async def begin(self, wal: int) -> None:
        await self._arrive()
        self._check_writable()
        if wal in self.disk.wals:
            raise WalBroken("exists")
        self.disk.wals[wal] = Held()
        self._writes_to = wal
        await self._leave()

    async def append(self, wal: int, n: int, entry: bytes, trim: int | None) -> None:
        held = await self._open(wal)
        if held.sealed or held.head != n - 1:
            self._break("sealed" if held.sealed else "gap")
        held.entries[n] = entry
        held.head = n
        self.disk.written.append(entry)
        if trim is not None:
            _trim(held, trim)
        await self._acknowledge()

    async def trim(self, wal: int, upto: int) -> None:
        held = await self._open(wal)
        _trim(held, upto)
        await self._acknowledge()

    # --- anybody's WAL -----------------------------------------------------------------------------------------------

    async def seal(self, wal: int) -> int | None:
        await self._arrive()
        self._check_writable()
        held = self.disk.wals.get(wal)
        if held is not None:
            held.sealed = True
        await self._leave()
        return None if held is None else held.head

    async def read(self, wal: int) -> Sequence[tuple[int, bytes]]:
        await self._arrive()
        held = self.disk.wals.get(wal)
        return [] if held is None else sorted(held.entries.items())

    async def delete(self, wal: int) -> None:
        await self._arrive()
        self._check_writable()
        self.disk.wals.pop(wal, None)
        await self._leave()

    async def close(self) -> None:
        self._writes_to = None

    # --- what can go wrong -------------------------------------------------------------------------------------------

    async def _arrive(self) -> None:
        """A request gets to the server, or it does not."""
        if self.disk.away:
            raise Unavailable("The WAL server does not answer.")

    async def _leave(self) -> None:
        """An answer to a write gets back to the client, or it does not."""

    async def _open(self, wal: int) -> Held:
        if self._writes_to != wal:
            raise WalBroken("not open")
        try:
            await self._arrive()
        except Unavailable:
            self._break("no answer")
        if self.disk.refusal:
            self._break(self.disk.refusal)
        held = self.disk.wals.get(wal)
        if held is None:
            self._break("gone")
        return held

    async def _acknowledge(self) -> None:
        try:
            await self._leave()
        except Unavailable:
            self._break("no answer")

    def _break(self, reason: str) -> NoReturn:
        self._writes_to = None
        raise WalBroken(reason)

    def _check_writable(self) -> None:
        if self.disk.refusal:
            raise Unavailable(f"The WAL server refuses writes: {self.disk.refusal}.")


def _trim(held: Held, upto: int) -> None:
    for n in [n for n in held.entries if n <= upto]:
        del held.entries[n]
