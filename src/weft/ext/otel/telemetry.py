"""OpenTelemetry for one host: puts the parts together that are configured."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import msgspec
from opentelemetry.context import get_current

from weft.core.effects import PerformTask
from weft.core.ids import RunUid, Seq
from weft.core.trace_context import TraceParent
from weft.errors import StoreError
from weft.ext.otel.configuration import Signals
from weft.ext.otel.log_records import LogRecords
from weft.ext.otel.measures import Measures
from weft.ext.otel.providers import open_providers
from weft.ext.otel.run_spans import RunSpans
from weft.ext.otel.span_sink import SpanSink
from weft.ext.otel.step_spans import SPAN_KEY, StepSpans, offer_trace
from weft.ports.store import StoredEvent
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.orders import StartOrder
from weft.runtime.run.actor import Actor
from weft.runtime.service import RunService
from weft.runtime.start_support import StartResult


class HostTelemetry:
    """What a host sends. Made before the host, because the host gets ``attempts`` with its parts."""

    def __init__(self, signals: Signals, service: RunService) -> None:
        self._service = service
        self._providers = open_providers(signals)
        traces = self._providers.traces
        self._sink = SpanSink(traces, is_own=signals.traces == "otlp") if traces is not None else None
        self._spans: RunSpans | None = None
        self._reads: set[asyncio.Task[None]] = set()
        self._measures = Measures(self._providers.meters, service) if self._providers.meters is not None else None
        self.attempts = StepSpans(self._sink, self._find) if self._sink is not None else None
        """Traces the bodies of steps; None if there are no traces."""

    def attach(self) -> None:
        """Send what the host of the service does from now on. Called before that host starts."""
        commits, work = self._service.commits, self._service.work
        assert work is not None, "the host is built"
        if self._sink is not None:
            self._spans = RunSpans(self._sink, self._read_event)
            commits.observe(self._spans.on_commit)
            work.measure_commits(self._spans.on_batch)
            work.trace_offers(self._offered)
            self._service.start = partial(_start_traced, self._service.start)  # type: ignore[method-assign]
        if self._measures is not None:
            commits.observe(self._measures.on_commit)
            work.measure_commits(self._measures.on_batch)
        if self._providers.logs is not None and work.step_logs is not None:
            work.step_logs.on_line = LogRecords(self._providers.logs).on_line

    async def close(self) -> None:
        """Send what is left."""
        await self._providers.close()

    def _find(self, uid: RunUid) -> Actor | None:
        return self._service.local.find(uid) if self._service.local is not None else None

    def _read_event(self, uid: RunUid, seq: Seq, found: Callable[[StoredEvent], None]) -> None:
        """Read one event in the background. If the store does not answer, its span is missing."""

        async def read() -> None:
            with contextlib.suppress(StoreError):
                for stored in await self._service.store.log.events(uid, after=Seq(seq - 1), limit=1):
                    found(stored)

        reading = asyncio.get_running_loop().create_task(read())
        self._reads.add(reading)
        reading.add_done_callback(self._reads.discard)

    def _offered(self, actor: Actor, effect: PerformTask) -> str:
        """Return the trace context for a task that is offered to other processes, and remember the task."""
        assert self._sink is not None
        assert self._spans is not None
        since = max(self._service.clock.now_ms(), effect.due)
        offered = (effect.attempt, effect.delivery, since, effect.step, effect.location)
        self._spans.offered[actor.uid, effect.task] = offered
        return str(offer_trace(self._sink, actor, effect))


def _start_traced(
    start: Callable[..., Coroutine[Any, Any, StartResult]], order: StartOrder, catalogue: HostCatalogue | None = None
) -> Coroutine[Any, Any, StartResult]:
    """Start a run in the trace of whoever starts it: a step, or a span of the program."""
    if not order.trace:
        span: Any = get_current().get(SPAN_KEY)
        if span is not None and (current := span.get_span_context()).is_valid:
            trace = TraceParent(current.trace_id, current.span_id, int(current.trace_flags))
            order = msgspec.structs.replace(order, trace=str(trace))
    return start(order, catalogue)
