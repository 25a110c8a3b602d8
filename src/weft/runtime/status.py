"""Whether a host runs, stops or has failed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from weft.steps.tracebacks import loggable

log = logging.getLogger("weft")


class HostStatus:
    """The state of one host. Parts read it; the host that owns them changes it."""

    def __init__(self, on_failure: Callable[[], None] = lambda: None) -> None:
        """``on_failure`` is called once, when this host can no longer work."""
        self.running = False
        self.closing = False
        """It drains, and takes nothing new."""
        self.failure: BaseException | None = None
        """Why this host can no longer work: one of its own tasks failed, or a loop ended again and again."""
        self.on_failure = on_failure

    def fail(self, what: str, error: BaseException) -> None:
        """Give the host up: it fails its health check, and the process that hosts it ends it."""
        if self.failure is None:
            self.failure = error
            log.critical("weft: %s failed; this host stops", what, exc_info=loggable(error))
            self.on_failure()
