"""Spans of attempts, from the host that performs them, and the trace context that a step sees while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import time_ns
from typing import Any

import msgspec
from opentelemetry import context as otel_context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context

from weft.core.effects import PerformTask
from weft.core.trace_context import TraceParent, attempt_span, parse_traceparent, work_span
from weft.ext.otel.agent_spans import ToolContent, span_name, tool_attributes
from weft.ext.otel.span_records import EndedSpan, PlainRecord, StepRecord, TracedRun, step_attributes
from weft.ext.otel.span_sink import SpanSink
from weft.ext.otel.wire import Attributes
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
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_attach = otel_context._RUNTIME_CONTEXT.attach  # noqa: SLF001 - what ``attach`` calls
_offered_trace = msgspec.json.Decoder(_OfferedTrace).decode


class StepSpan(NonRecordingSpan):
    """The current span while a step runs, the parent of what the step traces itself.

    It is made for every attempt, so it computes nothing before it is asked.
    """

    _name: str | None = None
    """Its name, if that is not the name of the step."""
    _noted: Attributes = ()
    _error: str | None = None

    def __init__(self, spans: StepSpans, run: TracedRun, flight: Flight) -> None:
        effect = flight.effect
        self.run = run
        self._spans = spans
        self._effect = effect
        self._about = (effect.step, effect.location, effect.task, effect.attempt, effect.delivery)
        self._is_offered = flight.offer is not None
        self._start = time_ns()

    def finish(self, output: bytes, error: BaseException | None) -> None:
        """Note that the body has ended."""
        effect, spans = self._effect, self._spans
        del self._effect  # and its input, which may be large
        if error is not None or effect.cover is not None or effect.step.startswith("weft."):
            self._finish_special(effect, output, error)
        elif self._noted or self._is_offered:
            spans.put(PlainRecord(self.run, self._span(time_ns())))
        else:
            spans.put(StepRecord(self.run, *self._about, self._start, time_ns()))

    def _finish_special(self, effect: PerformTask, output: bytes, error: BaseException | None) -> None:
        """Put the span of an attempt that failed, or at a step with another name or more attributes."""
        end = time_ns()
        if effect.cover is not None or effect.step.startswith("weft."):
            self._name = span_name(effect)
            self.note(dict(tool_attributes(effect)))
        if error is not None:
            self._error = f"{type(error).__name__}: {text_of(error)}"[:500]
        elif self._spans.content.is_wanted:
            self.note(self._spans.content.of_tool(effect, "result", output))
        self._spans.put(PlainRecord(self.run, self._span(end)))

    # --- the parent of what the step calls ------------------------------------------------------------------------

    def traceparent(self) -> TraceParent:
        """Return the span as the parent of what the body calls."""
        return TraceParent(self.run.trace_id, self._id())

    def note(self, attributes: Mapping[str, str | int]) -> None:
        """Add attributes, or other values of them."""
        if attributes:
            self._noted = tuple((dict(self._noted) | dict(attributes)).items())

    def get_span_context(self) -> SpanContext:
        return SpanContext(self.run.trace_id, self._id(), is_remote=False, trace_flags=_SAMPLED)

    def _id(self) -> int:
        return (work_span if self._is_offered else attempt_span)(self.run.uid, *self._about[2:])

    def _span(self, end: int) -> EndedSpan:
        """Return the whole span."""
        step, place, task, attempt, delivery = self._about
        attributes = (*step_attributes(step, place, attempt, delivery), *self._noted)
        parent, kind = self.run.span_id, SpanKind.INTERNAL
        if self._is_offered:
            # The host that owns the run traces the attempt from the offer to the result. This is the work in between.
            parent, kind = attempt_span(self.run.uid, task, attempt, delivery), SpanKind.CONSUMER
        name = self._name or step
        return EndedSpan(name, self._id(), parent, self._start, end, attributes, kind, self._error, has_run=True)


class StepSpans:
    """Begins the spans of attempts."""

    def __init__(self, sink: SpanSink, find: FindRun) -> None:
        self._sink = sink
        self._find = find
        self.put = sink.put
        self.content = ToolContent()

    def begin(self, flight: Flight, given: bytes) -> StepSpan | None:
        """Begin the span of an attempt, in the context of its body; None if its run is not traced."""
        run = self._sink.known.get(flight.uid) or self._run_of(flight)
        if run is None or not run.is_sampled:
            return None
        span = StepSpan(self, run, flight)
        # The step has a context of its own, which ends with it.
        _attach(otel_context.Context({SPAN_KEY: span}))
        STEP_TRACE.set(span)
        if self.content.is_wanted:
            span.note(self.content.of_tool(flight.effect, "arguments", given))
        return span

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
