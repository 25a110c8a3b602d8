"""Warnings about recurring problems, logged at limited intervals."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger("weft")

SILENCE_SECONDS = 10.0
"""How long a kind of warning is not logged again."""


class Complaints:
    """Logs warnings, each kind at most once in ``SILENCE_SECONDS``."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._said: dict[str, tuple[float, int]] = {}
        """By text: when it was last logged, and how many were suppressed since."""

    def say(self, text: str, *values: object) -> None:
        """Log a warning, unless this kind was logged recently. ``text`` is the kind; the values may differ."""
        now = self._monotonic()
        at, held_back = self._said.get(text, (now - SILENCE_SECONDS, 0))
        if now - at < SILENCE_SECONDS:
            self._said[text] = (at, held_back + 1)
            return
        self._said[text] = (now, 0)
        more = f" ({held_back} more of these were not logged)" if held_back else ""
        log.warning(f"{text}%s", *values, more)  # noqa: G004 - one of a few fixed texts
