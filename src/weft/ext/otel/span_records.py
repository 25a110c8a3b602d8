"""Spans that have ended, as plain records.

A host makes them while it works, so they hold what is at hand and nothing else. Ids are computed, and attributes and
bytes are made, by the thread that sends them. Until then Python's cycle collector need not look at them (``gc=False``):
they hold texts and numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec
from opentelemetry.trace import SpanKind

from weft.core.trace_context import attempt_span, commit_span, run_span, trace_of
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


class TracedRun(msgspec.Struct, gc=False):
    """What the spans of a run have in common. Most of it is computed when a span is sent."""

    uid: str
    run_id: str
    workflow: str
    root: str = ""
    trace: str = ""
    is_sampled: bool = True
    _ids: bytes = b""
    _encoded_attributes: bytes = b""

    @property
    def trace_id(self) -> int:
        return trace_of(self.uid, self.root, self.trace)

    @property
    def span_id(self) -> int:
        return run_span(self.uid)

    @property
    def attributes(self) -> Attributes:
        return ("weft.run.id", self.run_id), ("weft.run.uid", self.uid), ("weft.workflow", self.workflow)

    def encoded(self) -> tuple[bytes, bytes]:
        """Return the ids of spans below that of the run, and the attributes, both encoded once."""
        if not self._ids:
            self._encoded_attributes = encode_attributes(self.attributes)
            self._ids = encode_ids(self.trace_id, self.span_id)
        return self._ids, self._encoded_attributes


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
    is_common: bool = False
    """Whether many spans have its name and attributes, so that these are worth keeping in encoded form."""


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
    """A span that is made at once: that of a run, of a wait, or of work elsewhere. There are few of them."""

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
        attributes = (("weft.run.status", self.status), ("weft.events", self.seq))
        return EndedSpan(run.workflow, run.span_id, 0, self.start, self.end, attributes, has_run=True, is_common=True)

    def encode(self) -> bytes:
        return encode_ended(self.run, self.span())


class StepRecord(msgspec.Struct, frozen=True, gc=False):
    """The span of an attempt at a step as most are: it succeeded, on the host of its run."""

    run: TracedRun
    step: str
    place: str
    task: int
    attempt: int
    delivery: int
    start: int
    end: int

    def span(self) -> EndedSpan:
        number = attempt_span(self.run.uid, self.task, self.attempt, self.delivery)
        attributes = step_attributes(self.step, self.place, self.attempt, self.delivery)
        return EndedSpan(self.step, number, self.run.span_id, self.start, self.end, attributes, has_run=True)

    def encode(self) -> bytes:
        run = self.run
        ids, attributes = run.encoded()
        number = attempt_span(run.uid, self.task, self.attempt, self.delivery)
        text = _step_text(self.step, self.place, self.attempt, self.delivery)
        return encode_span(ids, number, (self.start, max(self.start, self.end)), text, attributes)


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
        run, (began, ended, runs) = self.run, self.batch
        ids, _ = run.encoded()
        return encode_span(ids, commit_span(run.uid, self.seq), (began, ended), _commit_text(runs, self.events))


def step_attributes(step: str, place: str, attempt: int, delivery: int) -> Attributes:
    """Return the attributes of every attempt at a step."""
    return ("weft.step", step), ("weft.place", place), ("weft.attempt", attempt), ("weft.delivery", delivery)


@lru_cache(maxsize=4_096)
def _step_text(step: str, place: str, attempt: int, delivery: int) -> bytes:
    return encode_text(step, SpanKind.INTERNAL, step_attributes(step, place, attempt, delivery))


@lru_cache(maxsize=1_024)
def _commit_text(runs: int, events: int) -> bytes:
    attributes = (("weft.commit.runs", runs), ("weft.commit.events", events))
    return encode_text("commit", SpanKind.INTERNAL, attributes)


def encode_text(name: str, kind: SpanKind, attributes: Attributes) -> bytes:
    """Encode the name, the kind and attributes of a span."""
    return encode_name(name) + _KINDS[kind] + encode_attributes(attributes)


_common_text = lru_cache(maxsize=4_096)(encode_text)


def encode_ended(run: TracedRun, span: EndedSpan) -> bytes:
    """Encode a span of any kind."""
    encode = _common_text if span.is_common else encode_text
    text = encode(span.name, span.kind, span.attributes)
    if span.has_run:
        text += run.encoded()[1]
    if span.error is not None:
        text += encode_status(span.error)
    if span.links:
        text += encode_links(span.links)
    ids = encode_ids(run.trace_id, span.parent)
    return encode_span(ids, span.id, (span.start, max(span.start, span.end)), text)
