"""Places: readable for people, compact in the log, and never two things at one place."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from weft.core import events as e
from weft.core.code.locations import check_name, compact_path, readable_path


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("fetch", [2]),
        ("fetch#2", [2, -2]),
        ("pages/~3/fetch", [2, 0, -4, 3]),
        ("pages/~0/fetch#12", [2, 0, -1, 3, -12]),
        ("&0/&1/fetch", [1, -1, 1, -2, 2]),
        ("both/x/work", [2, 3, 4]),
        ("two#2/a/two", [2, -2, 3, 2]),
    ],
)
def test_a_place_is_a_list_of_small_numbers_in_the_log_and_comes_back(place: str, path: list[int]) -> None:
    names = ["~", "&"]
    add: list[str] = []
    assert compact_path(place, {name: i for i, name in enumerate(names)}, add) == path
    assert readable_path(path, [*names, *add]) == place


@pytest.mark.parametrize("name", ["a", "a b", "ümläut", "a!b", "a:0", "a.b", "x" * 200, "日本"])
def test_names_that_mean_themselves_are_accepted(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "/", "a/b", "#", "a#1", "~0", "&0", "!x", "x" * 201, "a\n", "\0", "a\u2028b"])
def test_names_that_could_be_taken_for_another_place_are_refused(name: str) -> None:
    with pytest.raises(weft.BadValue) as refused:
        check_name(name)
    assert refused.value.code == "value.bad_name"


def test_every_kind_of_place_is_spelt_as_people_read_it() -> None:
    app = weft.App("memory://")

    @app.step
    async def fetch(n: int) -> int:
        return n

    @app.workflow
    async def child() -> int:
        return 1

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def body(n: int) -> weft.Turn[int, None]:
            await fetch(n)
            await fetch(n)
            return weft.done(None) if n == 1 else weft.again(n + 1)

        await ctx.loop("pages", body, state=0)
        await ctx.join("both", {"left": fetch(1), "right": fetch(2)})
        await ctx.map("items", fetch, [1])
        await asyncio.gather(fetch(1), fetch(2))
        await ctx.race("first", {"only": fetch(3)})
        await child()
        await ctx.sleep(0, name="nap")
        await ctx.step("inline", lambda: 1)
        await ctx.version("gate", 1)
        await ctx.set(a=1)
        await ctx.now()
        await ctx.messages("a", "b", timeout=0)

    desk = Desk(app)
    desk.run(flow())
    assert desk.places() == [
        "pages/~0/fetch", "pages/~0/fetch#2", "pages", "pages/~1/fetch", "pages/~1/fetch#2",
        "both/left/fetch", "both/right/fetch", "items", "items/~0/fetch", "&0/fetch", "&1/fetch",
        "first/only/fetch", "first", "child", "nap", "inline", "gate", "set", "now", "a+b",
    ]  # fmt: skip


def test_a_name_is_written_once_in_the_log_however_often_it_is_used() -> None:
    app = weft.App("memory://")

    @app.step
    async def a_name_that_is_rather_long(n: int) -> int:
        return n

    @app.workflow
    async def flow() -> None:
        for n in range(50):
            await a_name_that_is_rather_long.options(name="the place of it")(n)

    desk = Desk(app)
    desk.run(flow())
    assert sum(stored.body.count(b"the place of it") for stored in desk.stored()) == 1


def test_names_registered_by_an_event_are_known_to_the_next() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def nap(name: str) -> None:
            await ctx.sleep(0, name=name)

        await ctx.join("outer", {"x": nap("x"), "outer": nap("outer")})

    desk = Desk(app)
    desk.run(flow())
    timers = [event for event in desk.log() if isinstance(event, e.TimerSet)]
    assert [event.add for event in timers] == [["outer", "x"], []]
    assert desk.places() == ["outer/x/x", "outer/outer/outer"]


def test_one_name_is_for_one_kind_of_thing_in_one_place() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.sleep(0, name="x")
        await ctx.step("x", lambda: 1)

    failure = Desk(app).fail(flow())
    assert failure.type == "NameTaken"
    assert failure.message == '"x" names a sleep and now a step.'


def test_the_same_name_in_different_scopes_does_not_clash() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        async def nap() -> str:
            await ctx.sleep(0, name="x")
            return "nap"

        async def step() -> str:
            return await ctx.step("x", lambda: "step")

        return await ctx.join("both", {"a": nap(), "b": step()})

    assert Desk(app).run(flow()) == {"a": "nap", "b": "step"}


def test_two_things_of_one_name_in_one_app_are_refused() -> None:
    app = weft.App("memory://")

    @app.step(name="x")
    async def one() -> None: ...

    async def two() -> None: ...

    with pytest.raises(weft.NameTaken):
        app.step(name="x")(two)
    with pytest.raises(weft.NameTaken):
        app.workflow(name="x")(two)


def test_a_group_with_a_prefix_names_its_own() -> None:
    app = weft.App("memory://")
    group = weft.Group(prefix="billing.")

    @group.step
    async def charge() -> int:
        return 5

    @group.workflow
    async def pay() -> int:
        return await charge()

    app.include(group)
    desk = Desk(app)
    assert desk.run(pay()) == 5
    assert desk.places() == ["billing.charge"]
