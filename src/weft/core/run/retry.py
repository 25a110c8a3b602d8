"""Delays before retries. The jitter derives from ids, so that the same history has the same times. Pure."""

from __future__ import annotations

import zlib

from weft.core.events import Policy

LOST_MAX = 5
"""A task that is lost more often than this fails with ``WorkerLost``."""


def backoff_ms(policy: Policy, *, attempt: int, seed: str) -> int:
    """Return how long to wait after ``attempt`` (counted from 1) failed.

    The seed shortens the wait by up to 10 percent, so that tasks that failed together are not retried together.
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
    """Return how long to wait before a task that was lost ``lost`` times is dispatched again: 0 the first time."""
    return 0 if lost < 2 else min(1000 << (lost - 2), 60_000)
