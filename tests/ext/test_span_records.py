"""What the thread encodes from a record is the span that processors of the program get."""

import contextvars
import gc
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import weft
from weft.ext.otel.span_records import CommitRecord, RunRecord, SpanRecord, StepRecord, TracedRun, encode_ended
from weft.ext.otel.span_sink import SpanSink
from weft.ext.otel.step_spans import StepSpans
from weft.steps.task import STEP_TRACE

RUN = TracedRun("u1", "r1", "order")


class Kept(SpanSink):
    """A sink of a program's provider that also keeps the records."""

    def __init__(self, provider: TracerProvider) -> None:
        super().__init__(provider, is_own=False)
        self.records: list[SpanRecord] = []
        pass_on = self.put

        def put(record: SpanRecord) -> None:
            self.records.append(record)
            pass_on(record)

        self.put = self.put_later = put


def attempt(
    *,
    offer: object = None,
    error: BaseException | None = None,
    noted: Sequence[dict[str, Any]] = (),
    body: Callable[[trace.Span], None] = lambda _: None,
) -> Any:
    """The span of an attempt, its record, and the provider's view of it."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    sink = Kept(provider)
    sink.known["u1"] = RUN
    effect = SimpleNamespace(task=3, attempt=2, delivery=1, step="charge", location="charge/1", cover=None)
    flight: Any = SimpleNamespace(uid="u1", effect=effect, offer=offer)

    def perform() -> StepRecord:
        spans = StepSpans(sink, lambda _: None)
        span = spans.begin(flight, b"[]")
        assert span is not None
        current: object = trace.get_current_span()
        assert current is span
        assert STEP_TRACE.get() is span
        body(trace.get_current_span())
        for attributes in noted:
            span.note(attributes)
        spans.end(flight, span, b"1", error)
        return span

    span = contextvars.copy_context().run(perform)
    return span, sink.records[0], kept.get_finished_spans()[0]


@pytest.mark.parametrize(
    "given", [{}, {"error": OSError("no answer")}, {"noted": [{"gen_ai.usage.input_tokens": 3}]}, {"offer": object()}]
)
def test_an_attempt_is_encoded_as_it_is(given: dict[str, Any]) -> None:
    span, record, readable = attempt(**given)
    assert record.encode() == encode_ended(RUN, record.span())
    assert readable.context.span_id == record.span().id == span.get_span_context().span_id
    assert dict(readable.attributes) == dict((*record.span().attributes, *RUN.attributes))
    assert readable.attributes["weft.attempt"] == 2


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_without_a_text_ends_its_span_all_the_same() -> None:
    _, record, readable = attempt(error=Unreadable())
    assert record.span().error == readable.status.description == "Unreadable: <Unreadable without a text>"


def test_a_secret_in_an_error_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TEST_KEY", "sk-8d1f77ab-and-more")
    revealed = weft.Secret("env:WEFT_TEST_KEY").reveal()
    _, record, _ = attempt(error=OSError(f"refused: {revealed}"))
    assert record.span().error == "OSError: refused: [secret env:WEFT_TEST_KEY]"


def test_a_commit_is_encoded_as_it_is() -> None:
    record: SpanRecord = CommitRecord(RUN, 9, 2, (10**18, 10**18 + 5, 30))
    assert record.encode() == encode_ended(RUN, record.span())


def test_a_run_is_encoded_as_it_is() -> None:
    record: SpanRecord = RunRecord(RUN, "completed", 9, 10**18, 10**18 + 5)
    assert record.encode() == encode_ended(RUN, record.span())
    assert record.span().id == RUN.span_id


def test_a_span_that_waits_to_be_sent_is_no_work_for_the_cycle_collector() -> None:
    _, record, _ = attempt()
    assert not any(map(gc.is_tracked, (record, RUN, CommitRecord(RUN, 9, 2, (1, 2, 3)))))


def test_a_body_adds_attributes_to_the_current_span_until_it_has_ended() -> None:
    def body(current: trace.Span) -> None:
        assert isinstance(current, trace.Span)
        assert current.is_recording()
        current.set_attribute("order", "o-1")
        current.set_attributes({"cents": 4200, "paid": True, "rates": [0.5]})

    span, record, readable = attempt(body=body)
    added = {"order": "o-1", "cents": 4200, "paid": "True", "rates": "[0.5]"}
    assert added.items() <= dict(readable.attributes).items()
    assert record.encode() == encode_ended(RUN, record.span())
    span.set_attribute("late", 1)
    assert not span.is_recording()
    assert "late" not in dict(record.span().attributes)


def test_attributes_that_are_noted_again_have_the_newest_value() -> None:
    _, record, _ = attempt(noted=[{"weft.turn": 1}, {"weft.turn": 2}])
    assert [pair for pair in record.span().attributes if pair[0] == "weft.turn"] == [("weft.turn", 2)]
