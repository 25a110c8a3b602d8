"""Log warnings about recurring problems, at limited intervals."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger("weft")

INTERVAL_SECONDS = 10.0
"""How long a kind of warning is not logged again."""


class ThrottledLog:
    """Logs warnings, each kind at most once in ``INTERVAL_SECONDS``."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._logged: dict[str, tuple[float, int]] = {}
        """When each text was last logged, and how many warnings were suppressed since."""

    def warn(self, text: str, *values: object) -> None:
        """Log a warning, unless this kind was logged recently. ``text`` is the kind; the values may differ."""
        now = self._monotonic()
        at, suppressed = self._logged.get(text, (now - INTERVAL_SECONDS, 0))
        if now - at < INTERVAL_SECONDS:
            self._logged[text] = (at, suppressed + 1)
            return
        self._logged[text] = (now, 0)
        more = f" ({suppressed} more of these were not logged)" if suppressed else ""
        log.warning(f"{text}%s", *values, more)  # noqa: G004 - one of a few fixed texts
