"""Spans that have ended, as plain records.

A host makes them while it works, so they hold what is at hand and nothing else. Ids are computed, and attributes and
bytes are made, by the thread that sends them. Until then Python's cycle collector need not look at them (``gc=False``):
they hold texts and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, TraceFlags

from weft.core.trace_context import (
    TraceParent,
    attempt_distance,
    attempt_span,
    commit_distance,
    commit_span,
    run_span,
    trace_of,
    work_span,
)
from weft.ext.otel.wire import (
    END,
    OWN_ID,
    START,
    Attributes,
    LinkParts,
    encode_attributes,
    encode_links,
    encode_name,
    encode_parent,
    encode_span,
    encode_status,
    encode_text_attribute,
    encode_trace,
    pack_own,
    span_head,
)

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_KINDS = {kind: b"\x30" + bytes((kind.value + 1,)) for kind in SpanKind}
"""The kinds of OTLP begin with one that stands for no kind."""


class RunParts(NamedTuple):
    """What the spans of a run have in common, in encoded form but for its own span."""

    span: int
    trace: bytes
    ids: bytes
    """The trace, the span of the run as parent, and what stands before the id of a span."""
    attributes: bytes


class TracedRun(msgspec.Struct, gc=False):
    """What the spans of a run have in common. Most of it is computed when a span is sent."""

    uid: str
    run_id: str
    workflow: str
    root: str = ""
    trace: str = ""
    is_sampled: bool = True
    parts: RunParts | None = None
    """What ``encoded`` returned."""

    @property
    def trace_id(self) -> int:
        return trace_of(self.uid, self.root, self.trace)

    @property
    def span_id(self) -> int:
        return run_span(self.uid)

    @property
    def attributes(self) -> Attributes:
        return ("weft.run.id", self.run_id), ("weft.run.uid", self.uid), ("weft.workflow", self.workflow)

    def encoded(self) -> RunParts:
        """Return what the spans of the run have in common, encoded once."""
        found = self.parts
        if found is None:
            span, trace = self.span_id, encode_trace(self.trace_id)
            attributes = encode_text_attribute("weft.run.id", self.run_id)
            attributes += encode_text_attribute("weft.run.uid", self.uid) + _workflow_attribute(self.workflow)
            found = self.parts = RunParts(span, trace, trace + encode_parent(span) + OWN_ID, attributes)
        return found


@lru_cache(maxsize=1_024)
def _workflow_attribute(workflow: str) -> bytes:
    return encode_text_attribute("weft.workflow", workflow)


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


class SpanRecord(Protocol):
    """What a host notes of a span."""

    @property
    def run(self) -> TracedRun: ...

    def span(self) -> EndedSpan:
        """Return the whole span."""
        ...

    def encode(self) -> bytes:
        """Return the span as OTLP."""
        ...


class PlainRecord(msgspec.Struct, frozen=True, gc=False):
    """A span that is made at once: that of a wait or a task elsewhere, or of an unusual run. There are few of them."""

    run: TracedRun
    ended: EndedSpan

    def span(self) -> EndedSpan:
        return self.ended

    def encode(self) -> bytes:
        return encode_ended(self.run, self.ended)


class RunRecord(msgspec.Struct, frozen=True, gc=False):
    """The span of a run as most runs end: nobody else started it, and it did not fail."""

    run: TracedRun
    status: str
    seq: int
    start: int
    end: int

    def span(self) -> EndedSpan:
        run = self.run
        return EndedSpan(run.workflow, run.span_id, 0, self.start, self.end, self._own_attributes(), has_run=True)

    def encode(self) -> bytes:
        run = self.run
        parts = run.encoded()
        text = _common_text(run.workflow, SpanKind.INTERNAL, self._own_attributes()) + parts.attributes
        return encode_span(parts.trace, parts.span, self.start, self.end, text)

    def _own_attributes(self) -> Attributes:
        return ("weft.run.status", self.status), ("weft.events", self.seq)


class StepRecord(msgspec.Struct, gc=False):
    """The span of an attempt, from its beginning. While the step runs it is OpenTelemetry's current span.

    One is made for every attempt, so it computes nothing before it is asked.
    """

    run: TracedRun
    step: str
    place: str
    task: int
    attempt: int
    delivery: int
    began: int
    ended: int = 0
    is_offered: bool = False
    """Whether the host of the run is another process. It traces the attempt from the offer to the result."""
    is_special: bool = False
    """Whether one of the following is set, or it is the work on an offered task."""
    name: str = ""
    """Its name, if that is not the name of the step."""
    noted: Attributes = ()
    error: str | None = None

    def note(self, attributes: Mapping[str, str | int]) -> None:
        """Add attributes, or other values of them."""
        if attributes:
            self.is_special = True
            self.noted = tuple((dict(self.noted) | dict(attributes)).items())

    def traceparent(self) -> TraceParent:
        """Return the span as the parent of what the body calls."""
        return TraceParent(self.run.trace_id, self.id)

    @property
    def id(self) -> int:
        span = work_span if self.is_offered else attempt_span
        return span(self.run.uid, self.task, self.attempt, self.delivery)

    def span(self) -> EndedSpan:
        run, attributes = self.run, step_attributes(self.step, self.place, self.attempt, self.delivery)
        parent, kind = run.span_id, SpanKind.INTERNAL
        if self.is_offered:
            parent, kind = attempt_span(run.uid, self.task, self.attempt, self.delivery), SpanKind.CONSUMER
        name, attributes = self.name or self.step, (*attributes, *self.noted)
        return EndedSpan(name, self.id, parent, self.began, self.ended, attributes, kind, self.error, has_run=True)

    def encode(self) -> bytes:
        if self.is_special:
            return encode_ended(self.run, self.span())
        span, _, ids, attributes = self.run.parts or self.run.encoded()
        turn = (self.task, self.attempt, self.delivery)
        head, distance, text = _step_parts(self.step, self.place, turn, len(ids) + len(attributes))
        began, ended = self.began, self.ended
        own = pack_own((span ^ distance).to_bytes(8), START, began, END, max(began, ended))
        return b"".join((head, ids, own, text, attributes))

    # --- a span of OpenTelemetry, the parent of what the step traces itself ---------------------------------------

    def get_span_context(self) -> SpanContext:
        return SpanContext(self.run.trace_id, self.id, is_remote=False, trace_flags=_SAMPLED)

    def is_recording(self) -> bool:
        return not self.ended

    def set_attribute(self, key: str, value: object) -> None:
        """Add an attribute. A value that is neither text nor integer is sent as text."""
        if not self.ended:
            self.note({key: value if type(value) in {str, int} else str(value)})  # type: ignore[dict-item]

    def set_attributes(self, attributes: Mapping[str, object]) -> None:
        for key, value in attributes.items():
            self.set_attribute(key, value)

    add_event = NonRecordingSpan.add_event
    add_link = NonRecordingSpan.add_link
    update_name = NonRecordingSpan.update_name
    set_status = NonRecordingSpan.set_status
    record_exception = NonRecordingSpan.record_exception
    end = NonRecordingSpan.end
    __enter__ = Span.__enter__
    __exit__ = Span.__exit__


# No base class, because a struct cannot have one, and its cheapness is the point.
Span.register(StepRecord)


class CommitRecord(msgspec.Struct, frozen=True, gc=False):
    """The span of a commit of a run."""

    run: TracedRun
    seq: int
    events: int
    batch: tuple[int, int, int]
    """When the transaction began and ended, and of how many runs it was."""

    def span(self) -> EndedSpan:
        run, (began, ended, runs) = self.run, self.batch
        attributes = (("weft.commit.runs", runs), ("weft.commit.events", self.events))
        return EndedSpan("commit", commit_span(run.uid, self.seq), run.span_id, began, ended, attributes)

    def encode(self) -> bytes:
        began, ended, runs = self.batch
        span, _, ids, _ = self.run.parts or self.run.encoded()
        head, distance, text = _commit_parts(self.seq, self.events, runs, len(ids))
        return b"".join((head, ids, pack_own((span ^ distance).to_bytes(8), START, began, END, ended), text))


def step_attributes(step: str, place: str, attempt: int, delivery: int) -> Attributes:
    """Return the attributes of every attempt at a step."""
    return ("weft.step", step), ("weft.place", place), ("weft.attempt", attempt), ("weft.delivery", delivery)


@lru_cache(maxsize=4_096)
def _step_parts(step: str, place: str, turn: tuple[int, int, int], more: int) -> tuple[bytes, int, bytes]:
    """Return what is the same in the spans of many runs: the head, the distance to the span of the run, and the text.

    ``turn`` is the task, the attempt and the delivery, ``more`` the size of what is not the same.
    """
    task, attempt, delivery = turn
    text = encode_text(step, SpanKind.INTERNAL, step_attributes(step, place, attempt, delivery))
    return span_head(len(text) + more), attempt_distance(task, attempt, delivery), text


@lru_cache(maxsize=4_096)
def _commit_parts(seq: int, events: int, runs: int, more: int) -> tuple[bytes, int, bytes]:
    attributes = (("weft.commit.runs", runs), ("weft.commit.events", events))
    text = encode_text("commit", SpanKind.INTERNAL, attributes)
    return span_head(len(text) + more), commit_distance(seq), text


def encode_text(name: str, kind: SpanKind, attributes: Attributes) -> bytes:
    """Encode the name, the kind and attributes of a span."""
    return encode_name(name) + _KINDS[kind] + encode_attributes(attributes)


_common_text = lru_cache(maxsize=4_096)(encode_text)


def encode_ended(run: TracedRun, span: EndedSpan) -> bytes:
    """Encode a span of any kind."""
    parts = run.encoded()
    text = encode_text(span.name, span.kind, span.attributes)
    if span.has_run:
        text += parts.attributes
    if span.error is not None:
        text += encode_status(span.error)
    if span.links:
        text += encode_links(span.links)
    ids = parts.trace + encode_parent(span.parent) if span.parent else parts.trace
    return encode_span(ids, span.id, span.start, span.end, text)
