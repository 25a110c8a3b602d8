"""Spans of attempts, from the host that performs them, and the trace context that a step sees while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
from opentelemetry import context as otel_context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context

from weft.core.effects import PerformTask
from weft.core.trace_context import TraceParent, attempt_span, parse_traceparent, work_span
from weft.ext.otel.agent_spans import ToolContent, span_name, tool_attributes
from weft.ext.otel.span_sink import EndedSpan, SpanSink, TracedRun
from weft.runtime.run.actor import Actor
from weft.runtime.worker.flight import Flight
from weft.steps.task import SPAN_ATTRIBUTES, TRACEPARENT, Executor, StepBody

FindRun = Callable[[Any], Actor | None]


AttemptTrace = tuple[TracedRun, TraceParent]
"""A run, and the span of an attempt in it."""


class _OfferedTrace(msgspec.Struct):
    """The part of an offered task that says to which trace it belongs."""

    run_id: str
    trace: str = ""


(_SPAN_KEY,) = set_span_in_context(INVALID_SPAN, otel_context.Context())
"""The name of the current span in a context of OpenTelemetry."""
_offered_trace = msgspec.json.Decoder(_OfferedTrace).decode


class StepSpan(NonRecordingSpan):
    """The current span while a step runs: the parent of what the step traces itself."""

    def __init__(self, own: TraceParent) -> None:
        # The context of the SDK is made only if somebody asks for it.
        self._own = own

    def get_span_context(self) -> SpanContext:
        parent = self._own
        return SpanContext(parent.trace_id, parent.span_id, is_remote=False, trace_flags=TraceFlags(parent.flags))


class StepSpans:
    """Wraps the bodies of steps."""

    def __init__(self, sink: SpanSink, find: FindRun) -> None:
        self._sink = sink
        self._find = find
        self.content = ToolContent()

    def wrap(self, flight: Flight) -> StepBody | None:
        """Return a body that is traced, or the body as it is if there is nothing to trace."""
        run = self._sink.known.get(flight.uid)
        if flight.body is None or (run is not None and not run.is_sampled):
            return flight.body
        return TracedStep(self, flight, flight.body)

    def run_of(self, flight: Flight) -> AttemptTrace | None:
        """Return the run of an attempt, and the span of the attempt; None if the run is not traced."""
        effect = flight.effect
        if flight.offer is not None:
            # The host that owns the run traces the attempt from the offer to the result. This is the work in between.
            given = _offered_trace(flight.offer.body)
            parent = parse_traceparent(given.trace)
            if parent is None:
                return None
            run = self._sink.run(flight.uid, given.run_id, "", root="", trace=given.trace)
            number = work_span(flight.uid, effect.task, effect.attempt, effect.delivery)
            return run, TraceParent(parent.trace_id, number, parent.flags)
        known = self._sink.known.get(flight.uid)
        if known is None:
            actor = self._find(flight.uid)
            if actor is None:
                return None
            state = actor.machine.state
            known = self._sink.run(flight.uid, state.run_id, state.workflow, root=state.root, trace=state.trace)
        run = known
        number = attempt_span(flight.uid, effect.task, effect.attempt, effect.delivery)
        return run, TraceParent(run.trace_id, number, int(run.is_sampled))

    def ended(
        self, flight: Flight, found: AttemptTrace, start: int, error: BaseException | None, noted: dict[str, Any]
    ) -> None:
        """Send the span of an attempt, with the attributes that its body noted."""
        run, own = found
        effect = flight.effect
        is_offered = flight.offer is not None
        attributes = (
            ("weft.step", effect.step),
            ("weft.place", effect.location),
            ("weft.attempt", effect.attempt),
            ("weft.delivery", effect.delivery),
            *tool_attributes(effect),
            *noted.items(),
        )
        parent = run.span.span_id
        if is_offered:
            parent = attempt_span(flight.uid, effect.task, effect.attempt, effect.delivery)
        self._sink.emit(
            run,
            EndedSpan(
                span_name(effect),
                own.span_id,
                parent,
                start,
                time.time_ns(),
                attributes,
                SpanKind.CONSUMER if is_offered else SpanKind.INTERNAL,
                None if error is None else f"{type(error).__name__}: {error}"[:500],
                has_run=True,
            ),
        )


class TracedStep:
    """A step body whose attempt becomes a span."""

    __slots__ = ("_flight", "_spans", "name", "traced_body")

    def __init__(self, spans: StepSpans, flight: Flight, body: StepBody) -> None:
        self.name = body.name
        self.traced_body = body
        self._spans = spans
        self._flight = flight

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        found = self._spans.run_of(self._flight)
        if found is None:
            return await self.traced_body.perform(given, executor)
        own = found[1]
        # The step has a context of its own, which ends with it.
        otel_context.attach(otel_context.Context({_SPAN_KEY: StepSpan(own)}))
        TRACEPARENT.set(own)
        noted: dict[str, Any] = {}
        SPAN_ATTRIBUTES.set(noted)
        effect, content = self._flight.effect, self._spans.content
        content.note(effect, noted, "arguments", given)
        start, error = time.time_ns(), None
        try:
            result = await self.traced_body.perform(given, executor)
            content.note(effect, noted, "result", result)
            return result
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._spans.ended(self._flight, found, start, error, noted)

    def is_final(self, error: BaseException) -> bool:
        return self.traced_body.is_final(error)


def offer_trace(sink: SpanSink, actor: Actor, effect: PerformTask) -> TraceParent:
    """Return the span of an attempt that another process will perform."""
    state = actor.machine.state
    run = sink.run(actor.uid, state.run_id, state.workflow, root=state.root, trace=state.trace)
    number = attempt_span(actor.uid, effect.task, effect.attempt, effect.delivery)
    return TraceParent(run.trace_id, number, int(run.is_sampled))
