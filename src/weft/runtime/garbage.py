"""Python's cycle collector, calmed while an engine is hosted.

Thousands of runs in memory are hundreds of thousands of objects that are *not* garbage, and the default thresholds walk
over them again and again: about a quarter of the time of a busy host. Raised thresholds let the collector run when
there is something to find. A process that has set thresholds of its own keeps them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

_DEFAULTS = ((700, 10, 10), (2000, 10, 10), (2000, 10, 0))
_CALM = (20_000, 10, 10)


def calm() -> Callable[[], None]:
    """Raise the thresholds if they are Python's own; the answer puts them back."""
    before = gc.get_threshold()
    if before not in _DEFAULTS:
        return lambda: None
    gc.set_threshold(*_CALM)
    return lambda: gc.set_threshold(*before)
