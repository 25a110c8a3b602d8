"""Spans of attempts, from the host that performs them, and the trace context that a step sees while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from time import time_ns
from typing import Any

import msgspec
from opentelemetry import context as otel_context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context

from weft.core.effects import PerformTask
from weft.core.trace_context import TraceParent, attempt_span, parse_traceparent, work_span
from weft.ext.otel.agent_spans import ToolContent, span_name, tool_attributes
from weft.ext.otel.span_records import EndedSpan, TracedRun, encode_ended, encode_text
from weft.ext.otel.span_sink import SpanSink
from weft.ext.otel.wire import Attributes, encode_span
from weft.runtime.run.actor import Actor
from weft.runtime.worker.flight import Flight
from weft.steps.task import STEP_TRACE

FindRun = Callable[[Any], Actor | None]


class _OfferedTrace(msgspec.Struct):
    """The part of an offered task that says to which trace it belongs."""

    run_id: str
    trace: str = ""


(_SPAN_KEY,) = set_span_in_context(INVALID_SPAN, otel_context.Context())
"""The name of the current span in a context of OpenTelemetry."""
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_offered_trace = msgspec.json.Decoder(_OfferedTrace).decode


class StepSpan(NonRecordingSpan):
    """The current span while a step runs, the parent of what the step traces itself. Afterwards the span's record.

    It is made for every attempt, so it computes nothing before it is asked.
    """

    def __init__(self, spans: StepSpans, run: TracedRun, flight: Flight) -> None:
        effect = flight.effect
        self.run = run
        self._spans = spans
        self._effect = effect
        self._task = (effect.task, effect.attempt, effect.delivery)
        self._is_offered = flight.offer is not None
        self._noted: Attributes = ()
        self._error: str | None = None

    def begin(self, given: bytes) -> None:
        """Make this the current span of the body, and begin to measure."""
        # The step has a context of its own, which ends with it.
        otel_context.attach(otel_context.Context({_SPAN_KEY: self}))
        STEP_TRACE.set(self)
        if self._spans.content.is_wanted:
            self.note(self._spans.content.of_tool(self._effect, "arguments", given))
        self._start = time_ns()

    def finish(self, output: bytes, error: BaseException | None) -> None:
        """Note that the body has ended."""
        self._end = time_ns()
        effect = self._effect
        self._name, self._step, self._place = effect.step, effect.step, effect.location
        if effect.cover is not None or effect.step.startswith("weft."):
            self._name = span_name(effect)
            self.note(dict(tool_attributes(effect)))
        if error is not None:
            self._error = f"{type(error).__name__}: {error}"[:500]
        elif self._spans.content.is_wanted:
            self.note(self._spans.content.of_tool(effect, "result", output))
        del self._effect  # and its input, which may be large
        self._spans.put(self)

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
        return (work_span if self._is_offered else attempt_span)(self.run.uid, *self._task)

    # --- the record -----------------------------------------------------------------------------------------------

    def span(self) -> EndedSpan:
        """Return the whole span."""
        _, attempt, delivery = self._task
        attributes: Attributes = (
            ("weft.step", self._step),
            ("weft.place", self._place),
            ("weft.attempt", attempt),
            ("weft.delivery", delivery),
            *self._noted,
        )
        parent, kind = self.run.span_id, SpanKind.INTERNAL
        if self._is_offered:
            # The host that owns the run traces the attempt from the offer to the result. This is the work in between.
            parent, kind = attempt_span(self.run.uid, *self._task), SpanKind.CONSUMER
        return EndedSpan(
            self._name, self._id(), parent, self._start, self._end, attributes, kind, self._error, has_run=True
        )

    def encode(self) -> bytes:
        """Return the span as OTLP."""
        if self._is_offered or self._noted or self._error is not None:
            return encode_ended(self.run, self.span())
        run, (task, attempt, delivery) = self.run, self._task
        ids, attributes = run.encoded()
        own = attempt_span(run.uid, task, attempt, delivery)
        text = _plain_text(self._name, self._step, self._place, attempt, delivery)
        return encode_span(ids, own, (self._start, max(self._start, self._end)), text, attributes)


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
        span.begin(given)
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


@lru_cache(maxsize=4_096)
def _plain_text(name: str, step: str, place: str, attempt: int, delivery: int) -> bytes:
    """Encode what many attempts have in common."""
    attributes = (("weft.step", step), ("weft.place", place), ("weft.attempt", attempt), ("weft.delivery", delivery))
    return encode_text(name, SpanKind.INTERNAL, attributes)


def offer_trace(sink: SpanSink, actor: Actor, effect: PerformTask) -> TraceParent:
    """Return the span of an attempt that another process will perform."""
    state = actor.machine.state
    run = sink.run(actor.uid, state.run_id, state.workflow, root=state.root, trace=state.trace)
    number = attempt_span(actor.uid, effect.task, effect.attempt, effect.delivery)
    return TraceParent(run.trace_id, number, int(run.is_sampled))
