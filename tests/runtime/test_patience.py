"""Waiting for a store: as long as it answers somebody."""

import asyncio

import pytest

from tests.code.timeless import play
from weft.runtime.patience import START_SECONDS, patience


def test_a_store_that_answers_nobody_is_given_up() -> None:
    async def scene() -> None:
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            async with patience(lambda: began - 1):
                await asyncio.sleep(100)
        assert asyncio.get_running_loop().time() - began == pytest.approx(START_SECONDS)

    play(scene())


def test_a_store_that_answers_others_is_waited_for() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        async with patience(lambda: loop.time() - 1):
            await asyncio.sleep(100)

    play(scene())
