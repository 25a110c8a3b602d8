"""The providers of the SDK: those that the program has set, else new ones that the standard variables configure."""

from __future__ import annotations

from collections.abc import Callable
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
from weft.ext.otel.configuration import Signals
from weft.ext.otel.quiet_log import throttle_exporters
from weft.ext.otel.span_queue import SpanQueue
from weft.ext.otel.span_sink import OtlpExporter

_UNNAMED = "unknown_service"


class Providers(NamedTuple):
    """The providers of one host, and how to end those that belong to it."""

    traces: TracerProvider | None
    meters: MeterProvider | None
    logs: LoggerProvider | None
    close: Callable[[], None]


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

    def close() -> None:
        for provider in own:
            provider.shutdown()
        speak_again()

    return Providers(traces, meters, logs, close)


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
