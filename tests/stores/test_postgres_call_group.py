"""Calls that are asked for at the same time become one."""

import asyncio
from collections.abc import Sequence

import pytest

from weft.errors import BadValue, Unavailable
from weft.stores.postgres.call_group import CallGroup


class Doubles:
    """Doubles numbers. Refuses batches with a 0, and fails for batches with a negative number."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    async def call(self, rows: Sequence[int]) -> list[int]:
        self.batches.append(list(rows))
        await asyncio.sleep(0)
        if 0 in rows:
            raise BadValue("No zero.", hint="Use another.", code="value.bad_policy")
        if min(rows) < 0:
            raise Unavailable("Gone.")
        return [row * 2 for row in rows]


def added(doubles: Doubles, *rows: int) -> list[int | BaseException]:
    async def scenario() -> list[int | BaseException]:
        group = CallGroup(doubles.call)
        return await asyncio.gather(*(group.add(row) for row in rows), return_exceptions=True)

    return asyncio.run(scenario())


def test_rows_that_are_added_at_the_same_time_share_a_call() -> None:
    doubles = Doubles()

    assert added(doubles, 1, 2, 3) == [2, 4, 6]
    assert doubles.batches == [[1, 2, 3]]


def test_rows_that_are_added_during_a_call_share_the_next_one() -> None:
    doubles = Doubles()

    async def scenario() -> None:
        group = CallGroup(doubles.call)
        first = asyncio.ensure_future(group.add(1))
        while not doubles.batches:
            await asyncio.sleep(0)
        assert await asyncio.gather(first, group.add(2), group.add(3)) == [2, 4, 6]
        assert await group.add(4) == 8

    asyncio.run(scenario())
    assert doubles.batches == [[1], [2, 3], [4]]


def test_a_bad_value_is_the_error_of_its_own_row_only() -> None:
    first, bad, last = added(Doubles(), 1, 0, 3)

    assert (first, last) == (2, 6)
    assert isinstance(bad, BadValue)


def test_a_failure_is_the_error_of_all_rows_of_its_call() -> None:
    assert [type(answer) for answer in added(Doubles(), 1, -1)] == [Unavailable, Unavailable]


def test_a_caller_that_gives_up_does_not_disturb_the_others() -> None:
    async def scenario() -> None:
        group = CallGroup(Doubles().call)
        tasks = [asyncio.ensure_future(group.add(row)) for row in (1, 2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert await tasks[1] == 4

    asyncio.run(scenario())
