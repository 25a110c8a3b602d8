"""The services that endpoints share: the application, live feed, claims of workers, admission, limits, telemetry."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from weft.errors import NotRunning
from weft.observe.viewed_run import ViewedRuns
from weft.runtime.service import RunService
from weft.server.access.gate import AccessGate, create_access_gate
from weft.server.admission import Admission
from weft.server.approvals.notifier import create_notifier
from weft.server.hosted_app import Hosted
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
        runs: Callable[[], RunService],
        openapi_document: Callable[[], bytes],
        *,
        gate: Gate | None = None,
        limits: RequestLimits | None = None,
    ) -> None:
        self.hosted = hosted
        self._runs = runs
        self.openapi_document = openapi_document
        """Returns the OpenAPI document as JSON."""
        self.gate: Gate = gate or create_access_gate(lambda: self.runs)
        self.limits = limits or RequestLimits()
        self.rates = RequestRates(self.limits.rate_per_second)
        self.feed = Feed()
        self.viewed = ViewedRuns()
        self.notifier = create_notifier(lambda: self.runs)
        self.leases = Leases()
        self.telemetry = Telemetry()
        self.admission = Admission(self.limits.backlog_seconds)
        self.closing = asyncio.Event()
        """Set when the server stops. Ends the requests that only wait."""
        self._attached: RunService | None = None

    @property
    def runs(self) -> RunService:
        """Return the service for runs. Raises NotRunning."""
        return self._runs()

    def hosting(self) -> RunService:
        """Return the service for runs that are hosted here, and watch them from the first request on.

        Raises NotRunning if no host runs in this process.
        """
        runs = self.runs
        if not runs.status.running or runs.status.failure is not None:
            raise NotRunning(
                "No engine is running in this process.", hint="Host the app with app.lifespan or `async with app`."
            )
        if runs is not self._attached:
            self._attached = runs
            self.feed.attach(runs)
            self.telemetry.attach(runs)
            self.leases.attach(runs)
            self.admission.attach(runs)
            if self.notifier is not None:
                self.notifier.attach(runs)
            self.closing.clear()
        return runs

    def engine_failure(self) -> BaseException | None:
        """Return why the host of this process failed, if it did."""
        runs = self._attached
        if runs is None:
            with contextlib.suppress(NotRunning):
                runs = self.runs
        return runs.status.failure if runs is not None else None

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

    async def wait_unless_closing(self, seconds: float) -> bool:
        """Wait for a time, or until the server stops. Returns False if the server stops."""
        try:
            async with asyncio.timeout(seconds):
                await self.closing.wait()
        except TimeoutError:
            return True
        return False
