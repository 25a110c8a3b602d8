"""Spans of runs, as the SDK exports them, with ids that derive from the runs instead of random ones."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from weft.core.trace_context import TraceParent, parse_traceparent, run_span, trace_of
from weft.ext.otel.wire import (
    Attributes,
    LinkParts,
    encode_attributes,
    encode_links,
    encode_name,
    encode_request,
    encode_span,
    encode_status,
)

SCOPE = "weft"
VERSION = version("weft")
RUNS_MAX = 20_000
"""How many runs are remembered. What is forgotten is computed again."""
_SAMPLED, _DROPPED = TraceFlags(TraceFlags.SAMPLED), TraceFlags(TraceFlags.DEFAULT)
_UNSET = Status(StatusCode.UNSET)


class TracedRun(NamedTuple):
    """The trace of a run, and the attributes that all its spans have."""

    trace_id: int
    span: SpanContext
    """The span of the run."""
    is_sampled: bool
    attributes: Attributes


class EndedSpan(NamedTuple):
    """A span that has ended. Times are nanoseconds since 1970."""

    name: str
    id: int
    parent: int
    start: int
    end: int
    attributes: Attributes
    kind: SpanKind = SpanKind.INTERNAL
    error: str | None = None
    links: Sequence[LinkParts] = ()
    has_run: bool = False
    """Whether it also has the attributes of its run."""


class QueuedSpan(NamedTuple):
    """A span on its way to ``OtlpExporter``."""

    run: TracedRun
    span: EndedSpan

    @property
    def context(self) -> SpanContext:
        """The part of a span that a batch processor looks at."""
        return self.run.span


class OtlpExporter(OTLPSpanExporter):
    """Sends spans of runs, encoded by ``wire``, with the connection and the settings of the SDK's exporter."""

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        self._weft_resource = dict(resource.attributes)

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        encoded = [_encode(*queued) for queued in spans]
        request = encode_request(self._weft_resource, (SCOPE, VERSION), encoded)
        is_sent = bool(self._client.export(request).success)
        return SpanExportResult.SUCCESS if is_sent else SpanExportResult.FAILURE


def _encode(run: TracedRun, span: EndedSpan) -> bytes:
    middle = encode_name(span.name) + _KINDS[span.kind]
    ending = encode_attributes(span.attributes)
    if span.has_run:
        ending += encode_attributes(run.attributes)
    if span.error is not None:
        ending += encode_status(span.error)
    if span.links:
        ending += encode_links(span.links)
    ids = (run.trace_id.to_bytes(16), span.id, span.parent)
    return encode_span(ids, (span.start, max(span.start, span.end)), middle, ending)


_KINDS = {kind: b"\x30" + bytes((kind.value + 1,)) for kind in SpanKind}
"""The kinds of OTLP begin with one that stands for no kind."""


class SpanSink:
    """Passes spans to the processors of a provider."""

    def __init__(self, provider: TracerProvider, *, is_own: bool) -> None:
        """``is_own``: the provider has an ``OtlpExporter`` and no other."""
        self._is_own = is_own
        # The processors are not public, but a tracer could only make spans with random ids.
        processors = provider._active_span_processor  # noqa: SLF001
        self._on_end = processors._span_processors[0].on_end if is_own else processors.on_end  # noqa: SLF001
        self._sampler = provider.sampler
        self._keeps_all = _describe(provider.sampler) == _describe(DEFAULT_ON)
        """Whether every trace that begins here is sampled."""
        self._resource = provider.resource
        self._scope = InstrumentationScope(SCOPE, VERSION)
        self.known: dict[str, TracedRun] = {}
        """The runs that were asked for."""

    def run(self, uid: str, run_id: str, workflow: str, *, root: str, trace: str) -> TracedRun:
        """Return the trace of a run."""
        found = self.known.get(uid)
        if found is None:
            trace_id = trace_of(uid, root, trace)
            sampled = self._is_sampled(trace_id, parse_traceparent(trace) if trace else None)
            span = SpanContext(trace_id, run_span(uid), is_remote=False, trace_flags=_SAMPLED if sampled else _DROPPED)
            attributes = (("weft.run.id", run_id), ("weft.run.uid", uid), ("weft.workflow", workflow))
            found = self.known[uid] = TracedRun(trace_id, span, sampled, attributes)
            if len(self.known) > RUNS_MAX:
                del self.known[next(iter(self.known))]
        return found

    def forget(self, uid: str) -> None:
        """Forget a run that is over."""
        self.known.pop(uid, None)

    def emit(self, run: TracedRun, span: EndedSpan) -> None:
        """Pass a span on, if the run is sampled."""
        if not run.is_sampled:
            return
        if self._is_own:
            self._on_end(QueuedSpan(run, span))  # type: ignore[arg-type]
            return
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

    def _is_sampled(self, trace_id: int, parent: TraceParent | None) -> bool:
        if parent is None and self._keeps_all:
            return True
        context = Context()
        if parent is not None:
            remote = SpanContext(*parent[:2], is_remote=True, trace_flags=TraceFlags(parent.flags))
            context = set_span_in_context(NonRecordingSpan(remote), context)
        return self._sampler.should_sample(context, trace_id, "weft.run").decision is Decision.RECORD_AND_SAMPLE


def _describe(sampler: Sampler) -> str:
    return str(sampler.get_description())


def _link(trace_id: int, span_id: int, attributes: Attributes) -> Link:
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=_SAMPLED)
    return Link(context, dict(attributes))
