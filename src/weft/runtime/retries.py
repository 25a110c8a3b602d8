"""Repeat a call to the store until the store answers. Only for reads and idempotent writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from weft.errors import Corrupt, NewerSchema, StoreError, WrongSchema
from weft.runtime.status import HostStatus
from weft.runtime.throttled_log import ThrottledLog

T = TypeVar("T")

PAUSE_SECONDS_FIRST = 0.05
PAUSE_SECONDS_MAX = 2.0


class RetryUntilAvailable(Protocol):
    """Calls the store until it answers."""

    async def __call__(self, call: Callable[[], Awaitable[T]], /) -> T: ...


class StoreRetries:
    """Repeats calls for as long as the host runs."""

    def __init__(self, status: HostStatus, throttled_log: ThrottledLog) -> None:
        self._status = status
        self._throttled_log = throttled_log

    async def retry_until_available(self, call: Callable[[], Awaitable[T]], /) -> T:
        """Repeat the call until the store answers, and return the answer.

        Raises errors that a retry cannot fix, and every error once the host has stopped.
        """
        pause = PAUSE_SECONDS_FIRST
        while True:
            try:
                return await call()
            except (Corrupt, NewerSchema, WrongSchema):
                raise
            except StoreError as error:
                if not self._status.running:
                    raise
                self._throttled_log.warn("weft: the store does not answer (%s); trying again", error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
