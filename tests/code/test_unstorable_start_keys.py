"""A key function of a rule about starts that gives what no store can hold."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.testing import World


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("given", ["\ud800", "a\0b", 10**5000, Unreadable()], ids=["half", "NUL", "long", "raises"])
def test_a_function_that_gives_no_storable_key_starts_nothing(given: Any) -> None:
    app = weft.App("memory://")

    def key(customer: str) -> str:
        if isinstance(given, BaseException):
            raise given
        return given  # type: ignore[no-any-return]

    @app.workflow(singleton=weft.Singleton(key))
    async def sync(ctx: weft.Context, customer: str) -> str:
        return await ctx.receive("go", str)

    world = World(app)
    with pytest.raises(weft.BadValue) as refused:
        world.start(sync("ann"))
    assert refused.value.code == "start.bad_key"
