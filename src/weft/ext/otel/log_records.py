"""What steps print, as OpenTelemetry log records that belong to the span of their attempt."""

from __future__ import annotations

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider

from weft.ext.otel.span_sink import SCOPE, VERSION
from weft.ext.otel.step_spans import SPAN_KEY
from weft.runtime.worker.flight import Flight
from weft.steps.attempt_log import PrintedLine
from weft.steps.task import STEP_TRACE, StepTrace

NS_PER_MS = 1_000_000
_SEVERITIES = (
    (50, SeverityNumber.FATAL, "CRITICAL"),
    (40, SeverityNumber.ERROR, "ERROR"),
    (30, SeverityNumber.WARN, "WARNING"),
    (20, SeverityNumber.INFO, "INFO"),
)


class LogRecords:
    """Sends the lines of steps."""

    def __init__(self, provider: LoggerProvider) -> None:
        self._logger = provider.get_logger(SCOPE, VERSION)

    def on_line(self, flight: Flight, line: PrintedLine) -> None:
        """Send a line. Called on the thread of the step, so that the current span is that of its attempt."""
        number, text = next(
            ((number, text) for least, number, text in _SEVERITIES if line.level >= least),
            (SeverityNumber.DEBUG, "DEBUG"),
        )
        effect = flight.effect
        self._logger.emit(
            LogRecord(
                timestamp=line.at * NS_PER_MS,
                context=_context(STEP_TRACE.get(None)),
                severity_number=number,
                severity_text=text,
                body=line.text,
                attributes={
                    "weft.run.id": flight.run_id,
                    "weft.place": effect.location,
                    "weft.attempt": effect.attempt,
                    "weft.source": line.source,
                },
            )
        )


def _context(span: StepTrace | None) -> Context:
    return Context() if span is None else Context({SPAN_KEY: span})
