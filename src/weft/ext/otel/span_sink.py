"""Spans of runs, as the SDK exports them, with ids that derive from the runs instead of random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, DEFAULT_OFF, DEFAULT_ON, Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from weft.core.trace_context import parse_traceparent
from weft.ext.otel.span_queue import SpanQueue
from weft.ext.otel.span_records import EndedSpan, PlainRecord, SpanRecord, TracedRun
from weft.ext.otel.wire import Attributes, encode_request

SCOPE = "weft"
VERSION = version("weft")
RUNS_MAX = 20_000
"""How many runs are remembered. What is forgotten is computed again."""
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NO_PARENT = Context()
_UNSET = Status(StatusCode.UNSET)


class OtlpExporter(OTLPSpanExporter):
    """Sends spans of runs, encoded by ``wire``, with the connection and the settings of the SDK's exporter."""

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        self._weft_resource = dict(resource.attributes)

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        encoded = [record.encode() for record in spans]
        request = encode_request(self._weft_resource, (SCOPE, VERSION), encoded)
        is_sent = bool(self._client.export(request).success)
        return SpanExportResult.SUCCESS if is_sent else SpanExportResult.FAILURE


class SpanSink:
    """Passes spans to the processors of a provider."""

    def __init__(self, provider: TracerProvider, *, is_own: bool) -> None:
        """``is_own``: the provider has an ``OtlpExporter`` and no other."""
        # The processors are not public, but a tracer could only make spans with random ids.
        processors = provider._active_span_processor  # noqa: SLF001
        self._on_end = processors.on_end
        self.put: Callable[[SpanRecord], None] = self._put_readable
        """Pass on the record of a span of a run that is sampled."""
        self.put_later: Callable[[SpanRecord], None] = self.put
        """Pass on the record of an attempt. Whether enough wait to be sent is asked when its commit is ``put``."""
        if is_own:
            queue: SpanQueue = processors._span_processors[0]  # type: ignore[assignment]  # noqa: SLF001
            self.put, self.put_later = queue.on_end, queue.spans.append
        self._sampler = provider.sampler
        self._keeps = _is_root_sampled(provider.sampler)
        """Whether traces that begin here are sampled; None if the sampler decides for each."""
        self._resource = provider.resource
        self._scope = InstrumentationScope(SCOPE, VERSION)
        self.known: dict[str, TracedRun] = {}
        """The runs that were asked for."""

    def run(self, uid: str, run_id: str, workflow: str, *, root: str, trace: str) -> TracedRun:
        """Return the trace of a run."""
        found = self.known.get(uid)
        if found is None:
            found = self.known[uid] = TracedRun(uid, run_id, workflow, root, trace)
            found.is_sampled = self._ask_sampler(found) if trace or self._keeps is None else self._keeps
            if len(self.known) > RUNS_MAX:
                del self.known[next(iter(self.known))]
        return found

    def forget(self, uid: str) -> None:
        """Forget a run that is over."""
        self.known.pop(uid, None)

    def emit(self, run: TracedRun, span: EndedSpan) -> None:
        """Pass a span on, if the run is sampled."""
        if run.is_sampled:
            self.put(PlainRecord(run, span))

    def _put_readable(self, record: SpanRecord) -> None:
        """Pass a span on to processors that know nothing of records."""
        run, span = record.run, record.span()
        parent = None
        if span.parent:
            parent = SpanContext(run.trace_id, span.parent, is_remote=False, trace_flags=_SAMPLED)
        self._on_end(
            ReadableSpan(
                span.name,
                context=SpanContext(run.trace_id, span.id, is_remote=False, trace_flags=_SAMPLED),
                parent=parent,
                resource=self._resource,
                attributes=dict((*span.attributes, *run.attributes) if span.has_run else span.attributes),
                links=[_link(*link) for link in span.links],
                kind=span.kind,
                status=_UNSET if span.error is None else Status(StatusCode.ERROR, span.error),
                start_time=span.start,
                end_time=max(span.start, span.end),
                instrumentation_scope=self._scope,
            )
        )

    def _ask_sampler(self, run: TracedRun) -> bool:
        context = _NO_PARENT
        parent = parse_traceparent(run.trace) if run.trace else None
        if parent is not None:
            remote = SpanContext(*parent[:2], is_remote=True, trace_flags=TraceFlags(parent.flags))
            context = set_span_in_context(NonRecordingSpan(remote), context)
        decision = self._sampler.should_sample(context, run.trace_id, "weft.run").decision
        return decision is Decision.RECORD_AND_SAMPLE


def _is_root_sampled(sampler: Sampler) -> bool | None:
    """Return what a sampler says of every trace that begins here; None if that depends on the trace."""
    answers = {_describe(ALWAYS_ON): True, _describe(DEFAULT_ON): True}
    answers |= {_describe(ALWAYS_OFF): False, _describe(DEFAULT_OFF): False}
    return answers.get(_describe(sampler))


def _describe(sampler: Sampler) -> str:
    return str(sampler.get_description())


def _link(trace_id: int, span_id: int, attributes: Attributes) -> Link:
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=_SAMPLED)
    return Link(context, dict(attributes))
