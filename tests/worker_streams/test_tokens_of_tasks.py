"""The token of a task is valid while its key signs, and afterwards until the task's own time is over."""

from __future__ import annotations

import asyncio

import pytest

from weft.runtime.worker_streams.tokens import DAY_S, KEY_S, VALID_S, StreamTokens, TaskTicket
from weft.stores import open_store
from weft.tokens import ExpiredToken, InvalidToken

START_S = 700 * KEY_S


def ticket(issued_s: int, valid_s: int) -> TaskTicket:
    return TaskTicket("uid", 2, 1, 1, "", "wf.tasks.shout", issued_s, issued_s + valid_s)


async def opened(given: TaskTicket, *, now_s: int, may_expire: bool = True) -> TaskTicket:
    """Seal a token, and open it later in another process with the same store."""
    store = open_store("memory://")
    await store.open()
    try:
        token = await StreamTokens(store.access).seal(given)
        return await StreamTokens(store.access).open(token, now_s=now_s, may_expire=may_expire)
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("valid_s", "later_s"),
    [
        pytest.param(60, 10 * DAY_S, id="its timeout is over, but its key still signs"),
        pytest.param(VALID_S, KEY_S + DAY_S // 2, id="its key signs no more, but it has not expired"),
    ],
)
def test_a_token_is_valid(valid_s: int, later_s: int) -> None:
    given = ticket(START_S + DAY_S, valid_s)
    assert asyncio.run(opened(given, now_s=START_S + later_s)) == given


def test_a_token_of_an_earlier_key_expires_except_for_the_hosts_that_clear_up() -> None:
    given = ticket(START_S, 60)
    with pytest.raises(ExpiredToken):
        asyncio.run(opened(given, now_s=START_S + KEY_S))
    assert asyncio.run(opened(given, now_s=START_S + KEY_S, may_expire=False)) == given


@pytest.mark.parametrize("keys", [-2, 41])
def test_a_token_of_a_key_that_is_too_far_away_is_refused_without_a_look(keys: int) -> None:
    with pytest.raises(InvalidToken):
        asyncio.run(opened(ticket(START_S, VALID_S), now_s=START_S + keys * KEY_S))
