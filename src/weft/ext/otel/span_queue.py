"""Send spans in batches from a thread. What the SDK's processor does, for a fifth of its cost per span."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Any

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter

from weft.ext.otel.configuration import batch_setting

log = logging.getLogger("weft")

SHUTDOWN_SECONDS = 30.0


class SpanQueue(SpanProcessor):
    """Keeps spans that have ended until its thread sends them. ``OTEL_BSP_*`` set its limits."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._delay = batch_setting("SCHEDULE_DELAY", 5_000) / 1000
        self._most = batch_setting("MAX_QUEUE_SIZE", 16_384)
        self._batch = min(self._most, batch_setting("MAX_EXPORT_BATCH_SIZE", 2_048))
        self._spans: deque[Any] = deque()
        self._ready = threading.Event()
        self._sending = threading.Lock()
        self._closed = False
        self.dropped = 0
        """How many spans were dropped, because they could not be sent as quickly as they came."""
        self._thread = threading.Thread(target=self._run, name="weft-spans", daemon=True)
        self._thread.start()

    def on_end(self, span: Any) -> None:
        """Keep a span, unless there are too many already."""
        spans = self._spans
        count = len(spans)
        if count >= self._most or self._closed:
            self.dropped += 1
            return
        spans.append(span)
        if count + 1 == self._batch:
            self._ready.set()

    def _run(self) -> None:
        # Instrumented HTTP clients must not trace the requests that carry traces.
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        while not self._closed:
            self._ready.wait(self._delay)
            self._ready.clear()
            self._send_all()

    def _send_all(self) -> None:
        with self._sending:
            dropped, self.dropped = self.dropped, 0
            if dropped:
                log.warning("weft: %d spans were dropped, because they are not sent as quickly as they come", dropped)
            while self._spans:
                batch = [self._spans.popleft() for _ in range(min(self._batch, len(self._spans)))]
                try:
                    self._exporter.export(batch)
                except Exception:
                    log.exception("weft: %d spans could not be sent", len(batch))

    def shutdown(self) -> None:
        """Send what is left, and end."""
        self._closed = True
        self._ready.set()
        self._thread.join(SHUTDOWN_SECONDS)
        self.force_flush()
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send everything now."""
        del timeout_millis  # that of the exporter holds
        self._send_all()
        return True
