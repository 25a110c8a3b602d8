"""Calls to the store are repeated only while that can help."""

import asyncio

import pytest

from weft.errors import Corrupt, NewerSchema, StoreError, Unavailable, WrongSchema
from weft.runtime.retries import StoreRetries
from weft.runtime.status import HostStatus
from weft.runtime.throttled_log import ThrottledLog


@pytest.mark.parametrize("kind", [Corrupt, NewerSchema, WrongSchema])
def test_what_no_retry_can_fix_is_raised_at_once(kind: type[StoreError]) -> None:
    calls: list[int] = []

    async def call() -> None:
        calls.append(1)
        raise kind("weft.db: no such table: tasks") if len(calls) == 1 else AssertionError("it was called again")

    with pytest.raises(kind):
        asyncio.run(retries().retry_until_available(call))


def test_a_store_that_does_not_answer_is_asked_again() -> None:
    calls: list[int] = []

    async def call() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise Unavailable("weft.db is locked")
        return len(calls)

    assert asyncio.run(retries().retry_until_available(call)) == 2


def retries() -> StoreRetries:
    status = HostStatus()
    status.running = True
    return StoreRetries(status, ThrottledLog())
