"""Decide whether OpenTelemetry is configured, by the standard variables or by the program itself.

Nothing of OpenTelemetry is imported here, so that a host that sends nothing pays nothing.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib.util import find_spec
from typing import NamedTuple

log = logging.getLogger("weft")

PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_OFF = ("none", "")
_SIGNALS = ("TRACES", "METRICS", "LOGS")
PROTOCOL = "http/protobuf"
CLOSING_SECONDS_MAX = 3_600.0


class Signals(NamedTuple):
    """What is sent. Empty: nothing."""

    traces: str = ""
    """``program``: to the provider that the program has set. Else the name of an exporter: ``otlp`` or ``console``."""
    metrics: str = ""
    logs: str = ""

    @property
    def any(self) -> bool:
        return bool(self.traces or self.metrics or self.logs)


def configured_signals() -> Signals:
    """Return what is to be sent, and how."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Signals()
    return Signals(
        traces=_set_by_program("opentelemetry.trace", "get_tracer_provider") or _set_by_variables("TRACES"),
        metrics=_set_by_program("opentelemetry.metrics", "get_meter_provider") or _set_by_variables("METRICS"),
        logs=_set_by_program("opentelemetry._logs", "get_logger_provider") or _set_by_variables("LOGS"),
    )


def batch_setting(name: str, default: int) -> int:
    """Return a limit of the batches of spans, ``OTEL_BSP_…``; the default if it is not a number."""
    try:
        return max(1, int(os.environ.get(f"OTEL_BSP_{name}", "")))
    except ValueError:
        return default


def closing_seconds() -> float:
    """Return how long a host waits at its end for its collector: a request and a half, 15 seconds by default."""
    try:
        seconds = float(os.environ.get("OTEL_EXPORTER_OTLP_TIMEOUT", ""))
    except ValueError:
        return 15.0
    return seconds * 1.5 if 0 <= seconds < CLOSING_SECONDS_MAX else 15.0


def is_installed() -> bool:
    """Return whether the packages of the extra are there. Says so once if they are not."""
    missing = [name for name in PACKAGES if not _is_there(name)]
    if missing:
        log.warning(
            'weft: OpenTelemetry is configured, but nothing is sent: %s is not installed. pip install "weft[otel]"',
            ", ".join(missing),
        )
    return not missing


def note_protocols() -> None:
    """Log a warning for each variable that asks for a protocol that Weft does not speak."""
    for name in ("OTEL_EXPORTER_OTLP_PROTOCOL", *(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL" for signal in _SIGNALS)):
        asked = os.environ.get(name, "").strip().lower()
        if asked not in ("", PROTOCOL):
            log.warning("weft: %s=%s is not supported; %s is used, usually at port 4318", name, asked, PROTOCOL)


def _set_by_program(module: str, getter: str) -> str:
    """Return ``program`` if the program has set a provider of the SDK."""
    api = sys.modules.get(module)
    if api is None:
        return ""
    provider = getattr(api, getter)()
    return "program" if type(provider).__module__.startswith("opentelemetry.sdk") else ""


def _set_by_variables(signal: str) -> str:
    exporter = os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    if exporter:
        return "" if exporter in _OFF else exporter
    is_addressed = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or os.environ.get(_ENDPOINT)
    return "otlp" if is_addressed else ""


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package above it
        return False
