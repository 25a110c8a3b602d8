"""The services that endpoints share: the application, live feed, claims of workers, admission, limits, telemetry."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

from weft.errors import NotRunning
from weft.observe.viewed_run import ViewedRuns
from weft.observe.workflow_activity import WorkflowActivity
from weft.ports.rate_buckets import RateBuckets
from weft.runtime.service import RunService
from weft.server.access.gate import AccessGate, create_access_gate
from weft.server.admission import Admission
from weft.server.hosted_app import Hosted
from weft.server.identity import NOBODY, Gate
from weft.server.leases import Leases
from weft.server.limits import RequestLimits, RequestRates
from weft.server.live.feed import Feed
from weft.server.telemetry import Telemetry
from weft.server.web.files import WebFiles, installed_files


class Closable(Protocol):
    """Something that is closed with the services."""

    async def close(self) -> None:
        """End everything that was started for requests."""
        ...


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
        web: WebFiles | None = None,
        without_host: bool = False,
    ) -> None:
        """``without_host`` serves a store in a process that hosts nothing."""
        self.hosted = hosted
        self._runs = runs
        self.openapi_document = openapi_document
        """Returns the OpenAPI document as JSON."""
        self.gate: Gate = gate or create_access_gate(lambda: self.runs)
        self.limits = limits or RequestLimits()
        self.web = web or installed_files()
        self.rates = RequestRates(self.limits.rate_per_second, self._rate_buckets, unnamed=NOBODY.name)
        self.feed = Feed()
        self.viewed = ViewedRuns()
        self.activity = WorkflowActivity()
        self.leases = Leases()
        self.telemetry = Telemetry()
        self.admission = Admission(self.limits.backlog_seconds)
        self.mcp: Closable | None = None
        """The MCP server, from its first request on."""
        self.closing = asyncio.Event()
        """Set when the server stops. Ends the requests that only wait."""
        self._attached: RunService | None = None
        self._without_host = without_host
        self.dev_error = ""
        """Under ``weft dev``, why the code that was saved last is not running."""

    @property
    def runs(self) -> RunService:
        """Return the service for runs. Raises NotRunning."""
        return self._runs()

    def _rate_buckets(self) -> RateBuckets | None:
        """Return the buckets that all servers share, if there are any."""
        runs = self._attached
        if runs is None:
            with contextlib.suppress(NotRunning):
                runs = self.runs
        return runs.rate_buckets if runs is not None else None

    def hosting(self) -> RunService:
        """Return the service for runs that are hosted here, and watch them from the first request on.

        Raises NotRunning if no host runs in this process.
        """
        runs = self.runs
        if not self._without_host and (not runs.status.running or runs.status.failure is not None):
            raise NotRunning(
                "No engine is running in this process.", hint="Host the app with app.lifespan or `async with app`."
            )
        if runs is not self._attached:
            self._attached = runs
            self.feed.attach(runs)
            self.telemetry.attach(runs)
            self.leases.attach(runs)
            self.admission.attach(runs)
            self.closing.clear()
        return runs

    def note_call(self) -> None:
        """Let the host in this process know that somebody waits for an answer."""
        if self._attached is not None and self._attached.local is not None:
            self._attached.local.callers.calls += 1

    def engine_failure(self) -> BaseException | None:
        """Return why the host of this process failed, if it did."""
        runs = self._attached
        if runs is None:
            with contextlib.suppress(NotRunning):
                runs = self.runs
        return runs.status.failure if runs is not None else None

    def tell_dev_error(self, message: str) -> None:
        """Show in the web UI why the code that was saved last is not running."""
        self.dev_error = message
        self.feed.announce("dev", {"error": message})

    async def is_open(self) -> bool:
        """Return whether every program on this machine may do everything."""
        return isinstance(self.gate, AccessGate) and await self.gate.is_open()

    def keys_changed(self) -> None:
        """Tell the gate that keys were created or revoked."""
        if isinstance(self.gate, AccessGate):
            self.gate.forget_keys()

    async def close(self) -> None:
        """End all requests that only listen or wait."""
        self.closing.set()
        self.feed.close()
        await self.leases.close()
        if self.mcp is not None:
            await self.mcp.close()
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
