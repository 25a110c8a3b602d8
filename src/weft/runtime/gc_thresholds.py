"""Higher thresholds for Python's cycle collector while an engine is hosted.

Thousands of runs in memory are hundreds of thousands of objects that are *not* garbage. With the default thresholds,
the collector scans them again and again, which takes about a quarter of a busy host's time. With higher thresholds it
runs less often. It still moves new objects to the oldest ones in small portions, because each collection stops the
loop. A process that has set its own thresholds keeps them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

_RAISED = (5_000, 1, 190)
_RAISED_INCREMENTAL = (5_000, 5, 80)
"""For collectors without a middle generation: here the second number is how fast old objects are visited."""
_RAISED_BY_DEFAULT = {(700, 10, 10): _RAISED, (2000, 10, 10): _RAISED, (2000, 10, 0): _RAISED_INCREMENTAL}


def raise_gc_thresholds() -> Callable[[], None]:
    """Raise the thresholds if they are Python's defaults. Returns a function that restores them."""
    before = gc.get_threshold()
    raised = _RAISED_BY_DEFAULT.get(before)
    if raised is None:
        return lambda: None
    gc.set_threshold(*raised)
    return lambda: gc.set_threshold(*before)
