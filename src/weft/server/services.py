"""What endpoints share: the application, the live feed, claims of workers, admission, limits, telemetry."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from weft.errors import NotRunning
from weft.runtime.local import LocalHost
from weft.runtime.service import RunService
from weft.server.access.gate import AccessGate, access_gate
from weft.server.admission import Admission
from weft.server.approvals.notifier import notifier_here
from weft.server.hosted import Hosted
from weft.server.identity import Gate
from weft.server.leases import Leases
from weft.server.limits import RequestLimits, RequestRates
from weft.server.live.feed import Feed
from weft.server.telemetry import Telemetry


class Services:
    """The services of one API."""

    def __init__(
        self,
        hosted: Hosted,
        described: Callable[[], bytes],
        *,
        gate: Gate | None = None,
        limits: RequestLimits | None = None,
    ) -> None:
        self.hosted = hosted
        self.described = described
        """The OpenAPI document."""
        self.gate: Gate = gate or access_gate(lambda: self.runs)
        self.limits = limits or RequestLimits()
        self.rates = RequestRates(self.limits.rate_per_second)
        self.feed = Feed()
        self.notifier = notifier_here(lambda: self.runs)
        self.leases = Leases()
        self.telemetry = Telemetry()
        self.admission = Admission(self.limits.backlog_seconds)
        self.closing = asyncio.Event()
        """Set when the server stops: requests that only wait end then."""
        self._local: LocalHost | None = None

    @property
    def runs(self) -> RunService:
        """Return the service for runs. Raises NotRunning."""
        return self.hosted.service

    def local(self) -> LocalHost:
        """Return the host of this process. Its observers are attached at the first request. Raises NotRunning."""
        local = self.runs.local
        if local is None or not local.status.running or local.status.failure is not None:
            raise NotRunning("No engine runs here.", hint="Host the app: app.lifespan, or `async with app`.")
        if local is not self._local:
            self._local = local
            self.feed.attach(local)
            self.telemetry.attach(local)
            self.leases.attach(local)
            if self.notifier is not None:
                self.notifier.attach(local)
            self.closing.clear()
        return local

    def engine_failure(self) -> BaseException | None:
        """Return why the host of this process failed, if it did."""
        local = self._local
        if local is None:
            with contextlib.suppress(NotRunning):
                local = self.runs.local
        return local.status.failure if local is not None else None

    async def is_open(self) -> bool:
        """Return whether every program on this machine may do everything."""
        return isinstance(self.gate, AccessGate) and await self.gate.is_open()

    async def close(self) -> None:
        """End all requests that only listen or wait."""
        self.closing.set()
        self.feed.close()
        await self.leases.close()
        if self.notifier is not None:
            await self.notifier.close()
        if isinstance(self.gate, AccessGate):
            await self.gate.close()

    async def waited(self, seconds: float) -> bool:
        """Wait for a time, or until the server stops. Returns whether the time passed."""
        try:
            async with asyncio.timeout(seconds):
                await self.closing.wait()
        except TimeoutError:
            return True
        return False
