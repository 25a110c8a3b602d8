"""The providers of the SDK: those that the program has set, else new ones that the standard variables configure."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, ConsoleLogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from weft.errors import UsageError
from weft.ext.otel.configuration import Signals, closing_seconds
from weft.ext.otel.quiet_log import throttle_exporters
from weft.ext.otel.span_queue import SpanQueue
from weft.ext.otel.span_sink import OtlpExporter

log = logging.getLogger("weft")

_UNNAMED = "unknown_service"
_LOOK_SECONDS = 0.01


class Providers(NamedTuple):
    """The providers of one host, and how to end those that belong to it."""

    traces: TracerProvider | None
    meters: MeterProvider | None
    logs: LoggerProvider | None
    close: Callable[[], Coroutine[Any, Any, None]]


def open_providers(signals: Signals) -> Providers:
    """Return the providers of these signals. Raises UsageError if an exporter is not known."""
    own: list[Any] = []
    resource = _resource()
    traces = meters = logs = None
    if signals.traces:
        traces = _program(trace.get_tracer_provider(), signals.traces)
        if traces is None:
            traces = TracerProvider(resource=resource, shutdown_on_exit=False)
            if signals.traces == "otlp":
                traces.add_span_processor(SpanQueue(OtlpExporter(resource)))
            else:
                traces.add_span_processor(BatchSpanProcessor(_exporter(signals.traces, "traces")))
            own.append(traces)
    if signals.metrics:
        meters = _program(metrics.get_meter_provider(), signals.metrics)
        if meters is None:
            reader = PeriodicExportingMetricReader(_exporter(signals.metrics, "metrics"))
            meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
            own.append(meters)
    if signals.logs:
        logs = _program(_logs.get_logger_provider(), signals.logs)
        if logs is None:
            logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
            logs.add_log_record_processor(BatchLogRecordProcessor(_exporter(signals.logs, "logs")))
            own.append(logs)

    speak_again = throttle_exporters() if own else lambda: None

    async def close() -> None:
        try:
            await _shut_down(own)
        finally:
            speak_again()

    return Providers(traces, meters, logs, close)


async def _shut_down(providers: Sequence[Any]) -> None:
    """Let all providers send what is left, at the same time. The event loop goes on, and the program can end.

    An answer that never ends, one byte after the other, is no timeout to an exporter. So it is left behind here.
    """
    ending = [threading.Thread(target=one.shutdown, name="weft-telemetry-end", daemon=True) for one in providers]
    for thread in ending:
        thread.start()
    deadline = asyncio.get_running_loop().time() + closing_seconds()
    while any(thread.is_alive() for thread in ending):
        if asyncio.get_running_loop().time() > deadline:
            log.warning("weft: the rest of the telemetry is given up: the collector has not answered")
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _program(provider: Any, how: str) -> Any:
    return provider if how == "program" else None


def _resource() -> Resource:
    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED):
        found = found.merge(Resource({SERVICE_NAME: "weft"}))
    return found


def _exporter(name: str, signal: str) -> Any:
    if name == "console":
        consoles = {"traces": ConsoleSpanExporter, "metrics": ConsoleMetricExporter, "logs": ConsoleLogRecordExporter}
        return consoles[signal]()
    if name != "otlp":
        raise UsageError(
            f"OTEL_{signal.upper()}_EXPORTER={name!r} is not one of otlp, console, none.",
            hint="For another exporter, set a provider of the SDK in the program before it hosts the app.",
        )
    # The exporters read OTEL_EXPORTER_OTLP_* themselves.
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: PLC0415
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415

    exporters: dict[str, Any] = {"metrics": OTLPMetricExporter, "logs": OTLPLogExporter}
    return exporters[signal]()
