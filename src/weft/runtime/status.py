"""The status of a host: whether it runs, is stopping or has failed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from weft.runtime.redis_watch import RedisReport
from weft.steps.tracebacks import loggable_error

log = logging.getLogger("weft")


class HostStatus:
    """The status of one host. Its parts read it; only the host changes it."""

    def __init__(self, on_failure: Callable[[], None] = lambda: None) -> None:
        """``on_failure`` is called once, when this host can no longer work."""
        self.running = False
        self.closing = False
        """The host drains, and accepts no new work."""
        self.failure: BaseException | None = None
        """Why this host can no longer work: one of its own tasks failed, or a loop kept ending."""
        self.on_failure = on_failure
        self.redis: Callable[[], RedisReport] | None = None
        """Returns what this host says about its Redis server; None without one."""

    def fail(self, what: str, error: BaseException) -> None:
        """Mark the host as failed: its health check fails, and its process stops it."""
        if self.failure is None:
            self.failure = error
            log.critical("weft: %s failed; this host stops", what, exc_info=loggable_error(error))
            self.on_failure()
