"""Claims of workers in other processes and languages. For the store every claim is a host with a heartbeat.

A claim that is silent for longer than its lease is over: its host leaves, and the tasks that it still holds are lost
and offered again under another delivery number. If this process dies, the store sees that its claims are gone. So a
lease only says when to offer tasks again; the delivery number is what refuses a late answer.

Several processes may answer at one address, so a heartbeat may reach another process than the claim did. It renews the
claim in the store, and the process that made the claim looks there before it ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Iterator

import msgspec

from weft.cache import BoundedCache
from weft.core.ids import Epoch, HostId, RunUid
from weft.errors import NotFound, Refused, StoreError
from weft.ports.hosts import HostRow
from weft.ports.store import TaskOffer
from weft.runtime.background import BackgroundLoop
from weft.runtime.service import RunService
from weft.tokens import InvalidToken, pack, unpack

log = logging.getLogger("weft")

PREFIX = "http-"
SETTLED_MAX = 10_000
HELD_PER_CLAIM = 100
GRACE = 3
"""Other processes wait for this many leases: the process that made a claim is the one to end it."""
LOOK_SECONDS = 0.2


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """The identity of a claimed task; the claim's host name is what cannot be guessed."""

    host: str
    uid: str
    task: int
    attempt: int
    delivery: int

    def __str__(self) -> str:
        return pack(self)

    def is_of(self, offer: TaskOffer) -> bool:
        return (self.uid, self.task, self.attempt, self.delivery) == (
            offer.uid,
            offer.task,
            offer.attempt,
            offer.delivery,
        )

    def offer(self) -> TaskOffer:
        """Return an offer with the fields by which a store finds it."""
        return TaskOffer(
            uid=RunUid(self.uid),
            task=self.task,
            attempt=self.attempt,
            delivery=self.delivery,
            step="",
            queue="",
            body=b"",
            epoch=Epoch(0),
        )


def read_ticket(text: str) -> Ticket:
    """Read a ticket from its id. Raises NotFound."""
    try:
        ticket = unpack(text, Ticket)
    except InvalidToken:
        raise NotFound(f"No task {text[:40]!r} was claimed.") from None
    numbers = (ticket.task, ticket.attempt, ticket.delivery)
    if not ticket.host.startswith(PREFIX) or any(not 0 <= number < 2**53 for number in numbers):
        raise NotFound(f"No task {text[:40]!r} was claimed.")
    return ticket


class _Lease(msgspec.Struct):
    seconds: float
    until: float


class Leases:
    """The claims that were made in this process."""

    def __init__(self) -> None:
        self._attached: RunService | None = None
        self._leases: dict[HostId, _Lease] = {}
        self._settled: BoundedCache[str, str] = BoundedCache(SETTLED_MAX)
        self._ending: BackgroundLoop | None = None
        self.waiters = 0
        """How many claims wait for work."""

    def attach(self, runs: RunService) -> None:
        """Keep the claims of this process from now on."""
        self._attached = runs
        self._leases.clear()

    async def close(self) -> None:
        if self._ending is not None:
            await self._ending.stop()
            self._ending = None

    @property
    def _runs(self) -> RunService:
        assert self._attached is not None
        return self._attached

    async def open(self, host: HostId, seconds: float) -> None:
        """Announce a claim before it takes tasks."""
        await self._runs.store.hosts.join(host, lease_ms=int(seconds * 1000 * GRACE))
        self._leases[host] = _Lease(seconds, self._runs.clock.monotonic() + seconds)
        if self._ending is None:
            self._ending = BackgroundLoop("ending the leases of workers", self._end_silent, self._runs.status.fail)
            self._ending.start()

    async def beat(self, host: HostId) -> float:
        """Renew a claim. Returns its lease in seconds."""
        lease = self._leases.get(host)
        if lease is None:
            return await self._beat_foreign(host)
        lease.until = self._runs.clock.monotonic() + lease.seconds
        await self._runs.store.hosts.beat(host)
        return lease.seconds

    async def _beat_foreign(self, host: HostId) -> float:
        """Renew the claim of another process, or take it over if that process is gone."""
        row = await self._row(host)
        if row is None or row.gone:
            # The lease that the worker asked for is not known here: give it as long as any worker may be silent.
            await self.open(host, LEASE_ADOPTED_SECONDS)
            return LEASE_ADOPTED_SECONDS
        await self._runs.store.hosts.beat(host)
        return row.lease_ms / 1000 / GRACE

    async def _row(self, host: HostId) -> HostRow | None:
        return next((row for row in await self._runs.store.hosts.list_all() if row.host == host), None)

    @contextlib.contextmanager
    def waiting(self, host: HostId) -> Iterator[None]:
        """Keep a claim alive while its request waits for work."""
        lease = self._leases[host]
        lease.until = math.inf
        self.waiters += 1
        try:
            yield
        finally:
            self.waiters -= 1
            lease.until = self._runs.clock.monotonic() + lease.seconds

    async def leave(self, host: HostId) -> None:
        """End a claim. Tasks that it still holds are lost, and offered again."""
        self._leases.pop(host, None)
        await self._runs.store.hosts.leave(host)
        self._runs.wake()

    async def held(self, ticket: Ticket) -> TaskOffer:
        """Return the task of a ticket. Raises Refused if the claim no longer has it."""
        for offer in await self.offers(HostId(ticket.host)):
            if ticket.is_of(offer):
                return offer
        raise not_yours()

    async def offers(self, host: HostId) -> list[TaskOffer]:
        """Return the tasks that a claim holds."""
        return [offer for _, offer in await self._runs.store.tasks.taken_by([host], limit=HELD_PER_CLAIM)]

    # --- accepted answers -----------------------------------------------------------------------------------------

    def remember(self, ticket: str, digest: str) -> None:
        """Remember an accepted answer: a worker that got no reply may send it again."""
        self._settled.put(ticket, digest)

    def is_repeated(self, ticket: str, digest: str) -> bool:
        return self._settled.get(ticket) == digest

    # --- time -----------------------------------------------------------------------------------------------------

    async def _end_silent(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._runs.clock.monotonic()
            for host, lease in list(self._leases.items()):
                if lease.until < now:
                    await self._end(host, lease)

    async def _end(self, host: HostId, lease: _Lease) -> None:
        """End a claim, unless another process renewed it."""
        try:
            row = await self._row(host)
            left = lease.seconds - row.silent_ms / 1000 if row is not None else 0
            if left > 0:
                lease.until = self._runs.clock.monotonic() + left
            else:
                await self.leave(host)
        except StoreError as error:
            # Other hosts see that its counter stands still, and end it.
            log.warning("weft: the claim %s could not be ended: %s", host, error)


LEASE_ADOPTED_SECONDS = 30.0


def not_yours() -> Refused:
    """Return the refusal of an answer or heartbeat that comes too late."""
    return Refused(
        "This task is in other hands, or nobody waits for it any more.",
        hint="Stop working on it. Send heartbeats more often than the lease, or claim with a longer one.",
        code="task.not_yours",
    )
