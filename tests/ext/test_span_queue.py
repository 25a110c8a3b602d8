"""Spans are sent in batches by a thread, and a collector that is away is reported now and then, not every time."""

import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from weft.ext.otel.quiet_log import throttle_exporters
from weft.ext.otel.span_queue import SpanQueue


class Batches(SpanExporter):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[list[Any]] = []

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        self.sent.append(list(spans))
        return SpanExportResult.SUCCESS


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "5")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3")


@pytest.mark.usefixtures("_small")
def test_what_is_left_is_sent_at_the_end_in_batches() -> None:
    exporter = Batches()
    queue = SpanQueue(exporter)
    for number in range(2):
        queue.on_end(number)
    queue.shutdown()
    queue.on_end("late")
    assert exporter.sent == [[0, 1]]


@pytest.mark.usefixtures("_small")
def test_a_full_batch_is_sent_at_once() -> None:
    exporter = Batches()
    queue = SpanQueue(exporter)
    for number in range(4):
        queue.on_end(number)
    queue.shutdown()
    assert [span for batch in exporter.sent for span in batch] == [0, 1, 2, 3]
    assert all(len(batch) <= 3 for batch in exporter.sent)


class Busy(Batches):
    """A host that goes on while its spans are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.is_called = threading.Event()
        self.queue: SpanQueue | None = None

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        if self.queue is not None and not self.sent:
            self.queue.on_end("next")
        self.is_called.set()
        return super().export(spans)


@pytest.mark.usefixtures("_small")
def test_spans_that_come_while_others_are_sent_wait_for_a_batch_of_their_own() -> None:
    exporter = Busy()
    queue = exporter.queue = SpanQueue(exporter)
    for number in range(3):
        queue.on_end(number)
    assert exporter.is_called.wait(60)
    with queue._sending:
        assert exporter.sent == [[0, 1, 2]]
    queue.shutdown()
    assert exporter.sent == [[0, 1, 2], ["next"]]


def test_spans_that_cannot_be_kept_are_counted_and_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    exporter = Batches()
    queue = SpanQueue(exporter)
    with queue._sending:  # nothing is sent meanwhile
        for number in range(5):
            queue.on_end(number)
    queue.shutdown()
    assert exporter.sent == [[0, 1]]
    assert "3 spans were dropped" in caplog.text


@pytest.mark.usefixtures("_small")
def test_spans_that_nobody_counted_are_kept_within_the_limit_too(caplog: pytest.LogCaptureFixture) -> None:
    exporter = Batches()
    queue = SpanQueue(exporter)
    for number in range(9):
        queue.spans.append(number)
    queue.force_flush()
    assert exporter.sent == [[0, 1, 2], [3, 4]]
    assert "4 spans were dropped" in caplog.text
    queue.shutdown()


class Refusing(Batches):
    """Keeps what it is given, and says that it was not sent."""

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        super().export(spans)
        return SpanExportResult.FAILURE


def test_a_host_that_ends_does_not_try_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3")
    exporter = Refusing()
    queue = SpanQueue(exporter)
    queue._batch = 100  # nothing is sent before the end
    for number in range(10):
        queue.on_end(number)
    queue._batch = 3
    queue.shutdown()
    assert exporter.sent == [[0, 1, 2]]
    assert "10 spans were not sent before the end" in caplog.text


def test_an_exporter_that_complains_again_and_again_is_heard_once(caplog: pytest.LogCaptureFixture) -> None:
    speaker = logging.getLogger("opentelemetry.exporter.otlp.test")
    end = throttle_exporters()
    for _ in range(100):
        speaker.error("Failed to export spans batch code: %s", 503)
    end()
    (said,) = caplog.records
    assert said.name == "weft"
    assert said.levelname == "WARNING"
    assert "Failed to export spans batch code: 503" in said.getMessage()
    speaker.error("as before")
    assert caplog.records[-1].name == speaker.name
