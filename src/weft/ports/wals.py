"""The write-ahead logs that hosts keep in Redis, as the durable store knows them.

A *WAL* is the write-ahead log of one host. The durable store holds a row about each, and every run names the WAL that
may hold events of it that are not in the durable store yet. Only when the row says that the WAL is *drained*, may
another host claim the run. That a WAL is drained never becomes untrue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid
from weft.ports.wal_server import WalServer

ATTACHED_PER_CALL = 1_000
"""How many runs are attached in one transaction."""
KEPT_MS = 60 * 60 * 1000
"""How long the row of a WAL is kept after it was drained."""
LOSS_RUNS_MAX = 1_000
"""How many runs a loss names."""


class Wal(msgspec.Struct, frozen=True, kw_only=True):
    """A WAL that is not drained."""

    id: int
    """A number that is never used twice."""
    host: HostId
    redis: str
    """The id of the Redis server that holds it."""
    opened_at: Millis
    last: int
    """The number of the last entry that a heartbeat has reported; 0 before the first."""


class LossReason(StrEnum):
    """Why events that a host had acknowledged are missing."""

    UNREACHABLE = "unreachable"
    """Redis did not answer for as long as others waited."""
    GONE = "gone"
    """Redis answers and does not have the WAL."""
    MISSING = "missing"
    """Redis has the WAL, and entries of it are missing or cannot be read."""
    REFUSED = "refused"
    """The entries are there, and the run went on without them."""


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Events that a dead host had acknowledged and that are, or may be, missing."""

    wal: int
    host: HostId
    at: Millis
    """When the WAL was taken over."""
    reason: LossReason
    batches: int
    """The least number of batches that are missing."""
    runs: Sequence[RunId]
    """The runs that went on from an earlier event, or may have; at most ``LOSS_RUNS_MAX``."""


class RedisIds(Protocol):
    """The agreement of all hosts on which Redis server, with which content, is theirs."""

    async def namespace(self) -> str:
        """Return the id of this deployment, which is made once and begins the names of its keys."""
        ...

    async def redis_id(self) -> str | None:
        """Return the id that the Redis server must have; None before the first host has set it."""
        ...

    async def agree_redis_id(self, expected: str | None, new: str) -> str:
        """Set the id if it is still ``expected``. Returns the id that holds now."""
        ...

    async def see_redis_id(self, host: HostId, seen: str | None) -> None:
        """Record which id a host sees; None if it sees none or does not reach the server."""
        ...

    async def seen_redis_ids(self) -> Mapping[HostId, str | None]:
        """Return the id that each host sees that has joined."""
        ...


class Losses(Protocol):
    """What was lost with WALs."""

    async def losses(self) -> Sequence[Loss]:
        """Return the losses that nobody has acknowledged, oldest first."""
        ...

    async def acknowledge_losses(self) -> int:
        """Record that somebody knows of all losses so far. Returns how many they were."""
        ...


class Wals(RedisIds, Losses, Protocol):
    """The WALs of all hosts."""

    server: WalServer | None
    """The Redis server of this process, which may read the WALs of dead hosts there; None without one."""
    on_asked: Callable[[RunUid], None]
    """Called when another process asks the host of this one to drain a run."""

    def ask_to_drain(self, uid: RunUid) -> None:
        """Ask the owner of a run to bring its events into the durable store now. A hint: it may get lost."""
        ...

    async def open(self, host: HostId, redis: str) -> int:
        """Record a new WAL of a host, before anything of it exists in Redis. Returns its number.

        From here on, runs that the host creates or claims through this store are attached to it.
        """
        ...

    async def note(self, wal: int, last: int) -> bool:
        """Record the number of the last entry. Returns False if somebody has marked the WAL as drained."""
        ...

    async def attach(self, wal: int, host: HostId, runs: Mapping[RunUid, Epoch]) -> Sequence[RunUid]:
        """Let runs name this WAL, if the host still owns them in these epochs. Returns those that do.

        Their whole acknowledged log must be in the durable store, and nothing of them under way. Attaches none if the
        WAL is drained or belongs to another host.
        """
        ...

    async def attached(self, wal: int, *, limit: int) -> Sequence[RunId]:
        """Return the ids of runs that name this WAL and still belong to its host."""
        ...

    async def undrained(self, hosts: Sequence[HostId]) -> Sequence[Wal]:
        """Return the WALs of these hosts that are not drained, oldest first."""
        ...

    async def mark_drained(self, wal: int, *, forced: bool = False, loss: Loss | None = None) -> bool:
        """Record that nothing of a WAL is needed any more, and with it what was lost. Returns False if it was before.

        ``forced``: nobody has read it. A loss is only recorded with the first call.
        """
        ...

    async def old(self, *, limit: int) -> Sequence[int]:
        """Return WALs that were drained at least ``KEPT_MS`` ago and that no run names, oldest first."""
        ...

    async def remove(self, wals: Sequence[int]) -> None:
        """Forget WALs that are old. Their keys in Redis must be gone: nobody knows of them afterwards."""
        ...
