"""Parameters left to their defaults are recorded with the start, and are no part of the comparison of ids."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


@dataclass
class Address:
    city: str


def build(n: int, *, where: str = "Rome", parent: bool = False) -> weft.App:
    """An app whose workflow has these defaults. ``parent``: a workflow that only starts it as a child."""
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context, first: str, count: int = n, to: Address = Address(where)) -> list[Any]:  # noqa: B008
        await ctx.receive("go")
        return [first, count, to.city]

    if parent:

        @app.workflow
        async def outer() -> Any:
            return await flow("x")

    return app


def test_a_run_keeps_the_defaults_of_its_start() -> None:
    old, new = build(1), build(2, where="Oslo")
    desk = Desk(old)
    assert desk.across_a_crash(old.registered.workflow_named("flow")("x"), app=new) == ["x", 1, "Rome"]
    assert Desk(new).across_a_crash(new.registered.workflow_named("flow")("x")) == ["x", 2, "Oslo"]


def test_only_what_was_left_out_is_recorded() -> None:
    app = build(1)
    desk = Desk(app)
    desk.across_a_crash(app.registered.workflow_named("flow")("x", 7))
    started = desk.log()[0]
    assert msgspec.json.decode(started.defaults) == {"to": {"city": "Rome"}}  # type: ignore[union-attr]
    assert msgspec.json.decode(started.input) == {"first": "x", "count": 7}  # type: ignore[union-attr]


def test_a_child_keeps_the_defaults_of_its_start() -> None:
    old, new = build(1, parent=True), build(2, parent=True)
    desk = Desk(old)

    async def begin() -> None:
        await old.start("outer", {}, id="run")
        await calm()

    async def end() -> Any:
        await new.get("run.flow").send("go")
        return await new.get("run").result()

    desk.play(begin, crash=True)
    assert desk.play(end, app=new) == ["x", 1, "Rome"]


def test_defaults_stay_out_of_the_comparison_of_ids() -> None:
    old, new = build(1), build(2)
    desk = Desk(old)

    async def begin() -> None:
        await old.start("flow", {"first": "x"}, id="run")
        await calm()

    async def again() -> Any:
        run = await new.start("flow", {"first": "x"}, id="run")
        await run.send("go")
        same = await new.start("flow", {"first": "x", "count": 5}, id="run")
        assert same.id == run.id
        with pytest.raises(weft.IdTaken):
            await new.start("flow", {"first": "y"}, id="run")
        return await run.result()

    desk.play(begin, crash=True)
    assert desk.play(again, app=new) == ["x", 1, "Rome"]


def test_a_default_that_json_cannot_hold_stays_with_the_function() -> None:
    app = weft.App("memory://")
    missing: Any = object()

    @app.workflow
    async def flow(ctx: weft.Context, a: Any = missing, b: tuple[int, ...] = (1, 2), c: Any = (1, 2)) -> list[Any]:
        await ctx.receive("go")
        return [a is missing, isinstance(b, tuple), isinstance(c, tuple)]

    assert Desk(app).across_a_crash(flow()) == [True, True, True]


def test_a_parameter_that_was_removed_does_not_matter_if_it_was_left_out() -> None:
    def with_text(text: str) -> weft.App:
        app = weft.App("memory://")
        names: dict[str, Any] = {"weft": weft}
        exec(f"async def flow(ctx: weft.Context{text}):\n    await ctx.receive('go')\n    return 'end'\n", names)
        app.workflow(names["flow"])
        return app

    old, new = with_text(", n: int = 1"), with_text("")
    assert Desk(old).across_a_crash(old.registered.workflow_named("flow")(), app=new) == "end"


def test_a_large_default_is_kept_as_a_blob() -> None:
    def large(letter: str) -> weft.App:
        app = weft.App("memory://")

        @app.workflow
        async def flow(ctx: weft.Context, text: str = letter * 500_000) -> str:
            await ctx.receive("go")
            return text[0]

        return app

    old, new = large("a"), large("b")
    assert Desk(old).across_a_crash(old.registered.workflow_named("flow")(), app=new) == "a"
