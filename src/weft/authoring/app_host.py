"""The host that an app runs in this process: its store, its threads, its signal handlers, and what closes them."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from weft.authoring.app_catalogue import AppCatalogue
from weft.authoring.blocking.calls import LoopCalls
from weft.authoring.host_redis import HostRedis
from weft.authoring.open_resources import OpenResources
from weft.authoring.signals import TERMINATED, HostSignals
from weft.authoring.webhooks import DeclaredWebhooks
from weft.errors import WeftError
from weft.ext.otel.opening import open_telemetry
from weft.observe.models import describe_models
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.gc_thresholds import raise_gc_thresholds
from weft.runtime.host import Host
from weft.runtime.host_description import describe_process
from weft.runtime.host_steps import steps_version
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor
from weft.settings import variable
from weft.steps.output_capture import capture_output
from weft.steps.resources import OPEN_RESOURCES
from weft.stores import RedisUse, blobs_url, open_store

if TYPE_CHECKING:
    from weft.ext.otel.telemetry import HostTelemetry


class AppHost:
    """One host of an app, from ``open`` to ``close``. An app that is hosted again gets a new one."""

    def __init__(
        self, url: str, durability: Literal["full", "fast"], settings: Settings, redis: RedisUse | None
    ) -> None:
        self._redis = redis and msgspec.structs.replace(
            redis, lease_seconds=settings.lease_seconds, heard=self._on_hint
        )
        self._store = open_store(url, durability=durability, blobs=blobs_url(), redis=self._redis)
        self._settings = settings
        if redis is not None:
            prefix = variable("WEFT_REDIS_PREFIX")
            self._settings = msgspec.structs.replace(settings, redis=redis.url, redis_prefix=prefix)
        self._executor = PoolExecutor()
        self._signals = HostSignals()
        self._clock, self._ids = SystemClock(), TimeIds()
        self.service: RunService
        """How runs are reached, once the store is open."""
        self.calls = LoopCalls(asyncio.get_running_loop())
        """The calls of threads that wait for this host's event loop."""
        self.resources: OpenResources | None = None
        self._telemetry: HostTelemetry | None = None
        self._host_redis: HostRedis | None = None
        self._host = contextlib.AsyncExitStack()
        self._opened = contextlib.AsyncExitStack()
        """Closes what ``open`` opened, newest first."""

    async def open(self) -> None:
        """Listen for signals and open the store."""
        async with contextlib.AsyncExitStack() as opened:
            self._signals.listen()
            opened.callback(self._signals.close)
            opened.callback(self._executor.close)
            await self._store.open()
            opened.push_async_callback(self._store.close)
            self.service = RunService(self._store, self._clock, self._ids, limits=self._settings.patch_limits)
            if self._redis is not None:
                self._host_redis = HostRedis(self._redis, self._store)
                opened.push_async_callback(self._host_redis.close)
                await self._host_redis.open(self.service)
            opened.callback(raise_gc_thresholds())
            opened.callback(self.calls.close)
            self._opened = opened.pop_all()

    async def start(self, catalogue: AppCatalogue, queues: list[str], webhooks: DeclaredWebhooks) -> None:
        """Open the resources, recover runs and begin to work on them. If this fails, everything is closed again."""
        try:
            self.resources = resources = catalogue.open_resources()
            self._opened.push_async_callback(resources.close)
            await resources.start(catalogue.injected())
            webhooks.attach(self.service)
            self._host.push_async_callback(webhooks.close)
            context = contextvars.copy_context()
            context.run(OPEN_RESOURCES.set, resources)  # the host's steps begin in a copy of this context
            host = context.run(
                Host, self._with_telemetry(self._surroundings(catalogue, queues)), catalogue, self.service
            )
            if self._telemetry is not None:
                self._telemetry.attach()
            if self._settings.step_logs is not None:
                self._host.callback(capture_output())
            await self._host.enter_async_context(host)
            if self._host_redis is not None:
                self._host_redis.start_reporting(self.service)
                self._host.push_async_callback(self._host_redis.stop_reporting)
            webhooks.begin()
        except BaseException:
            await self._host.aclose()
            await self._opened.aclose()
            raise

    def _on_hint(self) -> None:
        """Look for what another process wrote."""
        if self.service.work is not None:
            self.service.work.on_hint()

    def _with_telemetry(self, given: Surroundings) -> Surroundings:
        """Let OpenTelemetry see the steps of the host, if it is configured."""
        self._telemetry = open_telemetry(self.service)
        if self._telemetry is None:
            return given
        self._host.push_async_callback(self._telemetry.close)
        return msgspec.structs.replace(given, traces=self._telemetry.attempts)

    def _surroundings(self, catalogue: AppCatalogue, queues: list[str]) -> Surroundings:
        described = describe_process(catalogue.programs(), queues, catalogue.style_of, catalogue.described_steps())
        return Surroundings(
            store=self._store,
            clock=self._clock,
            ids=self._ids,
            executor=self._executor,
            settings=self._settings,
            about=described
            | {"planned_steps": steps_version(catalogue.own_steps()), "inputs": catalogue.input_names()}
            | {"required": catalogue.required_names(), "types_of_inputs": catalogue.input_types()}
            | ({"models": describe_models(catalogue.models().all())} if catalogue.model_names() else {}),
            # SIGTERM ends the process cleanly, in a server as well as in a script.
            on_failure=partial(os.kill, os.getpid(), signal.SIGTERM),
        )

    async def stop(self) -> None:
        """Let running steps finish and hand the runs over. The store stays open."""
        await self._host.aclose()

    async def close(self, error: BaseException | None) -> None:
        """Stop, and close the store. ``error`` is what ended the hosting task.

        Raises WeftError if the engine had stopped by itself, and SystemExit if SIGTERM ended the task.
        """
        self._signals.drain()
        try:
            await self.stop()
        finally:
            await self._opened.aclose()
        failure = self.service.status.failure
        if failure is not None:
            raise WeftError(
                f"The engine stopped: {type(failure).__name__}: {failure}.",
                hint="Start the program again; its runs continue. Please report the error that was logged.",
            ) from failure
        self.refuse_terminated(error)

    def refuse_terminated(self, error: BaseException | None) -> None:
        """Raise SystemExit if SIGTERM ended the hosting task, with ``error``."""
        if self._signals.has_ended(error):
            raise SystemExit(TERMINATED) from None
