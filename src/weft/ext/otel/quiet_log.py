"""Say once in a while that nothing can be sent, instead of every time.

Without a collector, the SDK logs several lines for every batch. What it says is passed on as one warning of Weft, at
limited intervals, with the number of those that were left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from weft.runtime.throttled_log import ThrottledLog

_SPEAKERS = ("opentelemetry.exporter.", "opentelemetry.sdk._shared_internal", "opentelemetry.sdk.metrics._internal.")


class ThrottledRecords(logging.Filter):
    """Drops warnings and errors of a logger, and passes on one of them at a time."""

    def __init__(self, throttled: ThrottledLog) -> None:
        super().__init__()
        self._throttled = throttled

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        self._throttled.warn("weft: telemetry is not delivered: %s", record.getMessage())
        return False


def throttle_exporters() -> Callable[[], None]:
    """Throttle what the exporters of the SDK log, once they are imported. Returns a function that ends this."""
    own = ThrottledRecords(ThrottledLog())
    loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict) if name.startswith(_SPEAKERS)]
    for logger in loggers:
        logger.addFilter(own)

    def end() -> None:
        for logger in loggers:
            logger.removeFilter(own)

    return end
