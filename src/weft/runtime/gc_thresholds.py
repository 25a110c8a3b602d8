"""Higher thresholds for Python's cycle collector while an engine is hosted.

Thousands of runs in memory are hundreds of thousands of objects that are *not* garbage. With the default thresholds,
the collector scans them again and again, which takes about a quarter of a busy host's time. With higher thresholds it
runs less often. A process that has set its own thresholds keeps them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

_DEFAULTS = ((700, 10, 10), (2000, 10, 10), (2000, 10, 0))
_RAISED = (5_000, 5, 80)


def raise_gc_thresholds() -> Callable[[], None]:
    """Raise the thresholds if they are Python's defaults. Returns a function that restores them."""
    before = gc.get_threshold()
    if before not in _DEFAULTS:
        return lambda: None
    gc.set_threshold(*_RAISED)
    return lambda: gc.set_threshold(*before)
