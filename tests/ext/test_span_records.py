"""What the thread encodes from a record is the span that processors of the program get."""

import contextvars
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from weft.ext.otel.span_records import CommitRecord, SpanRecord, TracedRun, encode_ended
from weft.ext.otel.span_sink import SpanSink
from weft.ext.otel.step_spans import StepSpan, StepSpans
from weft.steps.task import STEP_TRACE

RUN = TracedRun("u1", 2**100 + 5, 77, (("weft.run.id", "r1"), ("weft.workflow", "order")), is_sampled=True)


def attempt(*, offer: object = None, error: BaseException | None = None, noted: dict[str, Any] | None = None) -> Any:
    """The record of an attempt, and the provider's view of it."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    sink = SpanSink(provider, is_own=False)
    sink.known["u1"] = RUN
    effect = SimpleNamespace(task=3, attempt=2, delivery=1, step="charge", location="charge/1", cover=None)
    flight: Any = SimpleNamespace(uid="u1", effect=effect, offer=offer)

    def perform() -> StepSpan:
        span = StepSpans(sink, lambda _: None).begin(flight, b"[]")
        assert span is not None
        assert trace.get_current_span() is span
        assert STEP_TRACE.get() is span
        if noted:
            span.note(noted)
        span.finish(b"1", error)
        return span

    return contextvars.copy_context().run(perform), kept.get_finished_spans()[0]


@pytest.mark.parametrize(
    "given", [{}, {"error": OSError("no answer")}, {"noted": {"gen_ai.usage.input_tokens": 3}}, {"offer": object()}]
)
def test_an_attempt_is_encoded_as_it_is(given: dict[str, Any]) -> None:
    record, readable = attempt(**given)
    assert record.encode() == encode_ended(RUN, record.span())
    assert readable.context.span_id == record.span().id == record.get_span_context().span_id
    assert dict(readable.attributes) == dict((*record.span().attributes, *RUN.attributes))
    assert readable.attributes["weft.attempt"] == 2


def test_a_commit_is_encoded_as_it_is() -> None:
    record: SpanRecord = CommitRecord(RUN, 9, 2, (10**18, 10**18 + 5, 30))
    assert record.encode() == encode_ended(RUN, record.span())


def test_attributes_that_are_noted_again_have_the_newest_value() -> None:
    record, _ = attempt(noted={"weft.turn": 1})
    record.note({"weft.turn": 2})
    assert [pair for pair in record.span().attributes if pair[0] == "weft.turn"] == [("weft.turn", 2)]
