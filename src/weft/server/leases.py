"""Claims of workers in other processes and languages. For the store, every claim is a host with a heartbeat.

A claim that is silent for longer than its lease is over. Its host leaves, and the tasks that it still holds are offered
again under another delivery number. If this process dies, the store sees that its claims are gone. So a lease only
decides when tasks are offered again; a late answer is refused by its delivery number.

Several processes may answer at one address, so a heartbeat may reach another process than the claim did. It renews the
claim in the store, and the process that made the claim reads the store before it ends the claim.
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
from weft.ports.tasks import TaskOffer
from weft.runtime.background import BackgroundLoop
from weft.runtime.service import RunService
from weft.tokens import InvalidToken, pack, unpack

log = logging.getLogger("weft")

PREFIX = "http-"
SETTLED_MAX = 10_000
TASKS_PER_CLAIM = 100
STORE_LEASES = 3
"""Other processes wait for this many leases, because the process that made a claim should end it."""
CHECK_SECONDS = 0.2


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """The identity of a claimed task. It cannot be guessed, because the host name of the claim is random."""

    host: str
    uid: str
    task: int
    attempt: int
    delivery: int

    def __str__(self) -> str:
        return pack(self)

    def matches(self, offer: TaskOffer) -> bool:
        """Return whether this is the ticket of an offered task."""
        return (self.uid, self.task, self.attempt, self.delivery) == (
            offer.uid,
            offer.task,
            offer.attempt,
            offer.delivery,
        )

    def offer(self) -> TaskOffer:
        """Return an offer with only the fields by which a store finds the task."""
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
    """Read a ticket from the id of its task. Raises NotFound if the id is not a ticket."""
    try:
        ticket = unpack(text, Ticket)
    except InvalidToken:
        raise NotFound(f"No task with the id {text[:40]!r} was claimed.") from None
    numbers = (ticket.task, ticket.attempt, ticket.delivery)
    if not ticket.host.startswith(PREFIX) or any(not 0 <= number < 2**53 for number in numbers):
        raise NotFound(f"No task with the id {text[:40]!r} was claimed.")
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
        self._expiry: BackgroundLoop | None = None
        self.waiters = 0
        """How many claims wait for work."""

    def attach(self, runs: RunService) -> None:
        """Keep the claims of this process from now on."""
        self._attached = runs
        self._leases.clear()

    async def close(self) -> None:
        """Stop ending silent claims."""
        if self._expiry is not None:
            await self._expiry.stop()
            self._expiry = None

    @property
    def _runs(self) -> RunService:
        assert self._attached is not None
        return self._attached

    async def open(self, host: HostId, seconds: float) -> None:
        """Announce a claim to the store, before it takes tasks."""
        await self._runs.store.hosts.join(host, lease_ms=int(seconds * 1000 * STORE_LEASES))
        self._leases[host] = _Lease(seconds, self._runs.clock.monotonic() + seconds)
        if self._expiry is None:
            self._expiry = BackgroundLoop("expiry of claims", self._expire_claims, self._runs.status.fail)
            self._expiry.start()

    async def beat(self, host: HostId) -> float:
        """Renew a claim. Returns its lease in seconds."""
        lease = self._leases.get(host)
        if lease is None:
            return await self._beat_remote(host)
        lease.until = self._runs.clock.monotonic() + lease.seconds
        await self._runs.store.hosts.beat(host)
        return lease.seconds

    async def _beat_remote(self, host: HostId) -> float:
        """Renew the claim of another process, or take it over if that process is gone."""
        row = await self._row(host)
        if row is None or row.gone:
            # The lease that the worker asked for is not known here, so give it the default.
            await self.open(host, LEASE_ADOPTED_SECONDS)
            return LEASE_ADOPTED_SECONDS
        await self._runs.store.hosts.beat(host)
        return row.lease_ms / 1000 / STORE_LEASES

    async def _row(self, host: HostId) -> HostRow | None:
        return next((row for row in await self._runs.store.hosts.list_all() if row.host == host), None)

    @contextlib.contextmanager
    def keep_while_waiting(self, host: HostId) -> Iterator[None]:
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

    async def find_task(self, ticket: Ticket) -> TaskOffer:
        """Return the task of a ticket. Raises Refused if the claim no longer has it."""
        for offer in await self.offers(HostId(ticket.host)):
            if ticket.matches(offer):
                return offer
        raise claim_lost_refusal()

    async def offers(self, host: HostId) -> list[TaskOffer]:
        """Return the tasks that a claim holds."""
        return [offer for _, offer in await self._runs.store.tasks.taken_by([host], limit=TASKS_PER_CLAIM)]

    # --- accepted answers -----------------------------------------------------------------------------------------

    def remember(self, ticket: str, digest: str) -> None:
        """Remember an accepted answer, because a worker that got no reply may send it again."""
        self._settled.put(ticket, digest)

    def is_repeated(self, ticket: str, digest: str) -> bool:
        """Return whether this answer was already accepted."""
        return self._settled.get(ticket) == digest

    # --- expiry -----------------------------------------------------------------------------------------------------

    async def _expire_claims(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            now = self._runs.clock.monotonic()
            for host, lease in list(self._leases.items()):
                if lease.until < now:
                    await self._expire(host, lease)

    async def _expire(self, host: HostId, lease: _Lease) -> None:
        """End a claim, unless another process renewed it."""
        try:
            row = await self._row(host)
            left = lease.seconds - row.silent_ms / 1000 if row is not None else 0
            if left > 0:
                lease.until = self._runs.clock.monotonic() + left
            else:
                await self.leave(host)
        except StoreError as error:
            # Other hosts will see that its counter has stopped, and end the claim.
            log.warning("weft: could not end the claim %s: %s", host, error)


LEASE_ADOPTED_SECONDS = 30.0


def claim_lost_refusal() -> Refused:
    """Return the refusal of an answer or heartbeat that comes too late."""
    return Refused(
        "Another worker has this task now, or its result is no longer needed.",
        hint="Stop working on it. Send heartbeats more often, or claim with a longer lease.",
        code="task.not_yours",
    )
