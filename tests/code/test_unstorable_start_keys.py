"""A key function of a rule about starts that gives what no store can hold."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.testing import World


class Leaving(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise SystemExit


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


def test_a_key_of_a_class_that_ends_the_program_when_it_is_read_is_its_text() -> None:
    app = weft.App("memory://")

    @app.workflow(singleton=weft.Singleton(lambda customer: Leaving(f"c-{customer}")))
    async def sync(ctx: weft.Context, customer: str) -> str:
        return await ctx.receive("go", str)

    world = World(app)
    assert world.start(sync("ann")).id == world.start(sync("ann")).id


def test_a_function_that_raises_without_a_message_is_named() -> None:
    app = weft.App("memory://")

    def key(customer: str) -> str:
        raise KeyboardInterrupt

    @app.workflow(singleton=weft.Singleton(key))
    async def sync(ctx: weft.Context, customer: str) -> None: ...

    with pytest.raises(weft.BadValue, match=r"its key raised KeyboardInterrupt\. Give"):
        World(app).start(sync("ann"))
