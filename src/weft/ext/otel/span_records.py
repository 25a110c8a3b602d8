"""Spans that have ended, as plain records.

A host makes them while it works, so they hold what is at hand and nothing else. Ids are computed, and attributes and
bytes are made, by the thread that sends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from opentelemetry.trace import SpanKind

from weft.core.trace_context import commit_span
from weft.ext.otel.wire import (
    Attributes,
    LinkParts,
    encode_attributes,
    encode_ids,
    encode_links,
    encode_name,
    encode_span,
    encode_status,
)

_KINDS = {kind: b"\x30" + bytes((kind.value + 1,)) for kind in SpanKind}
"""The kinds of OTLP begin with one that stands for no kind."""


class TracedRun:
    """The trace of a run, its span, and the attributes that its spans have."""

    __slots__ = ("_encoded", "attributes", "is_sampled", "span_id", "trace_id", "uid")

    def __init__(self, uid: str, trace_id: int, span_id: int, attributes: Attributes, *, is_sampled: bool) -> None:
        self.uid = uid
        self.trace_id = trace_id
        self.span_id = span_id
        self.is_sampled = is_sampled
        self.attributes = attributes
        self._encoded: tuple[bytes, bytes] | None = None

    def encoded(self) -> tuple[bytes, bytes]:
        """Return the ids of spans below that of the run, and the attributes, both encoded once."""
        if self._encoded is None:
            self._encoded = encode_ids(self.trace_id, self.span_id), encode_attributes(self.attributes)
        return self._encoded


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


class PlainRecord(NamedTuple):
    """A span that is made at once: that of a run, of a wait, or of work elsewhere. There are few of them."""

    run: TracedRun
    ended: EndedSpan

    def span(self) -> EndedSpan:
        return self.ended

    def encode(self) -> bytes:
        return encode_ended(self.run, self.ended)


class CommitRecord(NamedTuple):
    """The span of a commit of a run."""

    run: TracedRun
    seq: int
    events: int
    batch: tuple[int, int, int]
    """When the transaction began and ended, and of how many runs it was."""

    def span(self) -> EndedSpan:
        run, seq, events, (began, ended, runs) = self
        attributes = (("weft.commit.runs", runs), ("weft.commit.events", events))
        return EndedSpan("commit", commit_span(run.uid, seq), run.span_id, began, ended, attributes)

    def encode(self) -> bytes:
        run, seq, events, (began, ended, runs) = self
        ids, _ = run.encoded()
        return encode_span(ids, commit_span(run.uid, seq), (began, ended), _commit_text(runs, events))


@lru_cache(maxsize=1_024)
def _commit_text(runs: int, events: int) -> bytes:
    attributes = (("weft.commit.runs", runs), ("weft.commit.events", events))
    return encode_text("commit", SpanKind.INTERNAL, attributes)


def encode_text(name: str, kind: SpanKind, attributes: Attributes) -> bytes:
    """Encode the name, the kind and attributes of a span."""
    return encode_name(name) + _KINDS[kind] + encode_attributes(attributes)


def encode_ended(run: TracedRun, span: EndedSpan) -> bytes:
    """Encode a span of any kind."""
    text = encode_text(span.name, span.kind, span.attributes)
    if span.has_run:
        text += run.encoded()[1]
    if span.error is not None:
        text += encode_status(span.error)
    if span.links:
        text += encode_links(span.links)
    ids = encode_ids(run.trace_id, span.parent)
    return encode_span(ids, span.id, (span.start, max(span.start, span.end)), text)
