"""Begin to send to OpenTelemetry, if that is configured. Imports the SDK only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.ext.otel.configuration import configured_signals, is_installed, note_protocols
from weft.runtime.service import RunService

if TYPE_CHECKING:
    from weft.ext.otel.telemetry import HostTelemetry


def open_telemetry(service: RunService) -> HostTelemetry | None:
    """Return what a host sends; None if nothing is configured. Called before the host is built. Raises UsageError."""
    signals = configured_signals()
    if not signals.any or not is_installed():
        return None
    if "otlp" in signals:
        note_protocols()
    from weft.ext.otel.telemetry import HostTelemetry  # noqa: PLC0415 - slow to import, and seldom needed

    return HostTelemetry(signals, service)
