"""When a failed attempt is tried again. Jitter comes from ids, so that the same history gives the same times."""

from __future__ import annotations

import zlib

from weft.core.events import Policy

LOST_MAX = 5
"""More losses of one task than this: it fails with ``WorkerLost``."""


def backoff_ms(policy: Policy, *, attempt: int, seed: str) -> int:
    """How long to wait after ``attempt`` (counted from 1) failed.

    Up to a tenth is taken off by the seed, so that many tasks that failed together do not come back together.
    """
    match policy.backoff:
        case "fixed":
            full = policy.delay_ms
        case "linear":
            full = policy.delay_ms * attempt
        case _:
            full = policy.delay_ms << min(attempt - 1, 40)
    capped = min(full, policy.delay_ms_max)
    jitter = zlib.crc32(f"{seed}:{attempt}".encode()) % 1000
    return capped - capped * jitter // 10_000


def loss_ms(lost: int) -> int:
    """How long to wait before a task that was lost ``lost`` times is handed out again: at once the first time."""
    return 0 if lost < 2 else min(1000 << (lost - 2), 60_000)
