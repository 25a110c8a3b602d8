"""Spans of attempts, from the host that performs them, and the trace context that a step sees while it runs."""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from typing import Any

import msgspec
from opentelemetry import context as otel_context
from opentelemetry.trace import INVALID_SPAN, set_span_in_context

from weft.core.effects import PerformTask
from weft.core.trace_context import TraceParent, attempt_span, parse_traceparent
from weft.ext.otel.agent_spans import ToolContent, span_name, tool_attributes
from weft.ext.otel.span_records import StepRecord, TracedRun
from weft.ext.otel.span_sink import SpanSink
from weft.runtime.run.actor import Actor
from weft.runtime.worker.flight import Flight
from weft.steps.failures import text_of
from weft.steps.task import STEP_TRACE

FindRun = Callable[[Any], Actor | None]


class _OfferedTrace(msgspec.Struct):
    """The part of an offered task that says to which trace it belongs."""

    run_id: str
    trace: str = ""


(SPAN_KEY,) = set_span_in_context(INVALID_SPAN, otel_context.Context())
"""The name of the current span in a context of OpenTelemetry."""
_attach = otel_context._RUNTIME_CONTEXT.attach  # noqa: SLF001 - what ``attach`` calls
_offered_trace = msgspec.json.Decoder(_OfferedTrace).decode


class StepSpans:
    """Traces the attempts that a host performs."""

    def __init__(self, sink: SpanSink, find: FindRun) -> None:
        self._sink = sink
        self._find = find
        self._put, self._put_later = sink.put, sink.put_later
        self._content = ToolContent()

    def begin(self, flight: Flight, given: bytes) -> StepRecord | None:
        """Begin the span of an attempt, in the context of its body; None if its run is not traced."""
        run = self._sink.known.get(flight.uid) or self._run_of(flight)
        if run is None or not run.is_sampled:
            return None
        effect = flight.effect
        span = StepRecord(run, effect.step, effect.location, effect.task, effect.attempt, effect.delivery, time_ns())
        if flight.offer is not None:
            span.is_offered = span.is_special = True
        # The step has a context of its own, which ends with it.
        _attach(otel_context.Context({SPAN_KEY: span}))
        STEP_TRACE.set(span)
        if self._content.is_wanted:
            span.note(self._content.of_tool(effect, "arguments", given))
        return span

    def end(self, flight: Flight, span: StepRecord, output: bytes, error: BaseException | None) -> None:
        """Note that the body has ended."""
        span.ended = time_ns()
        effect = flight.effect
        if error is not None or effect.cover is not None or span.step.startswith("weft."):
            span.is_special = True
            span.name = span_name(effect)
            span.note(dict(tool_attributes(effect)))
            if error is not None:
                span.error = f"{type(error).__name__}: {text_of(error)}"[:500]
            elif self._content.is_wanted:
                span.note(self._content.of_tool(effect, "result", output))
        (self._put if span.is_special else self._put_later)(span)

    def _run_of(self, flight: Flight) -> TracedRun | None:
        """Return the run of an attempt, if its trace is known here."""
        if flight.offer is not None:
            given = _offered_trace(flight.offer.body)
            if parse_traceparent(given.trace) is None:
                return None
            return self._sink.run(flight.uid, given.run_id, "", root="", trace=given.trace)
        actor = self._find(flight.uid)
        if actor is None:
            return None
        state = actor.machine.state
        return self._sink.run(flight.uid, state.run_id, state.workflow, root=state.root, trace=state.trace)


def offer_trace(sink: SpanSink, actor: Actor, effect: PerformTask) -> TraceParent:
    """Return the span of an attempt that another process will perform."""
    state = actor.machine.state
    run = sink.run(actor.uid, state.run_id, state.workflow, root=state.root, trace=state.trace)
    number = attempt_span(actor.uid, effect.task, effect.attempt, effect.delivery)
    return TraceParent(run.trace_id, number, int(run.is_sampled))
