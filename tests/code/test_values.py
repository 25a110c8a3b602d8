"""What goes in and out of workflows, steps and messages: typed at both ends, checked and small in the log."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core.values import INLINE_BYTES_MAX


class Colour(Enum):
    RED = "red"


@dataclass
class Item:
    name: str
    count: int = 1


@dataclass
class Order:
    items: list[Item]
    placed: datetime
    note: str | None = None
    tags: dict[str, int] = field(default_factory=dict)


class Customer(BaseModel):
    name: str
    age: int = Field(ge=0)


class Point(TypedDict):
    x: int
    y: int


class Pair(NamedTuple):
    left: int
    right: str


class Speed(msgspec.Struct):
    knots: float


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TYPED: list[tuple[Any, Any]] = [
    (int, 7),
    (float, 1.5),
    (str, "ü\n\"'"),
    (bool, True),
    (type(None), None),
    (bytes, b"\0\1\xff"),
    (datetime, NOON),
    (date, date(2024, 2, 29)),
    (timedelta, timedelta(hours=1)),
    (Decimal, Decimal("1.10")),
    (UUID, UUID(int=5)),
    (Colour, Colour.RED),
    (Order, Order([Item("a"), Item("b", 2)], NOON, tags={"x": 1})),
    (Customer, Customer(name="ann", age=3)),
    (list[Customer], [Customer(name="ann", age=3)]),
    (Point, {"x": 1, "y": 2}),
    (Pair, Pair(1, "r")),
    (Speed, Speed(3.5)),
    (list[Item], [Item("a")]),
    (dict[str, Item], {"k": Item("a")}),
    (tuple[int, str], (1, "a")),
    (int | str | None, "x"),
    (Any, {"deep": [1, {"a": None}]}),
]


@pytest.mark.parametrize(("type_", "value"), TYPED, ids=[str(type_) for type_, _ in TYPED])
def test_a_value_keeps_its_type_through_workflow_step_message_and_result(type_: Any, value: Any) -> None:
    app = weft.App("memory://")
    kinds: list[type] = []

    async def same(value: Any) -> Any:
        kinds.append(type(value))
        return value

    same.__annotations__.update({"value": type_, "return": type_})
    step = app.step(name="same")(same)

    async def flow(ctx: weft.Context, value: Any) -> Any:
        kinds.append(type(value))
        through = await step(value)
        heard = await ctx.receive("n", type_)
        assert through == heard == value
        kinds.extend([type(through), type(heard)])
        return heard

    flow.__annotations__.update({"value": type_, "return": type_})
    workflow = app.workflow(flow)

    async def scene() -> Any:
        run = await app.start(workflow(value))
        await run.send("n", value)
        return await run.result()

    found = Desk(app).play(scene)
    assert found == value
    assert {*kinds, type(found)} == {type(value)}


def test_typing_s_own_typed_dict_is_understood() -> None:
    from typing import TypedDict as Builtin

    Place = Builtin("Place", {"x": int})  # noqa: UP013 - made here
    app = weft.App("memory://")

    async def move(place: Any) -> Any:
        return {"x": place["x"] + 1}

    move.__annotations__.update({"place": Place, "return": Place})
    step = app.step(move)

    @app.workflow
    async def flow() -> int:
        return (await step({"x": 1}))["x"]  # type: ignore[no-any-return]

    assert Desk(app).run(flow()) == 2


BIG = "x" * (INLINE_BYTES_MAX * 3)


def test_large_values_go_through_blobs_wherever_they_pass() -> None:
    app = weft.App("memory://")

    @app.step
    async def grow(text: str) -> str:
        return text + "y"

    @app.workflow
    async def flow(ctx: weft.Context, text: str) -> str:
        text = await grow(text)
        text = await ctx.step("inline", lambda: text + "i")
        text += await ctx.receive("more", str)
        (message,) = await ctx.messages("even more")
        text += message.body
        await ctx.receive("go")
        return text

    async def begin() -> None:
        run = await app.start(flow(BIG), id="run")
        await run.send("more", BIG)
        await run.send("even more", BIG)
        await calm()

    async def end() -> Any:
        run = app.get("run")
        await run.send("go")
        return await run.result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(end) == BIG + "yi" + BIG + BIG
    assert all(len(stored.body) < INLINE_BYTES_MAX for stored in desk.stored())
    assert len(desk.state().output) < 200


def test_a_message_that_waited_at_rest_is_read_with_its_blob() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        await ctx.receive("go")
        return len(await ctx.receive("big", str)) + sum(len(m.body) for m in await ctx.messages("many", most=5))

    async def begin() -> None:
        run = await app.start(flow(), id="run")
        await run.send("big", BIG)
        for letter in "abc":
            await run.send("many", letter * 50_000)

    async def end() -> Any:
        run = app.get("run")
        await run.send("go")
        return await run.result()

    desk = Desk(app)
    desk.play(begin)
    assert desk.play(end) == len(BIG) + 150_000


@pytest.mark.parametrize("size", [INLINE_BYTES_MAX - 2, INLINE_BYTES_MAX - 1, INLINE_BYTES_MAX])
def test_the_border_between_log_and_blob_changes_nothing(size: int) -> None:
    app = weft.App("memory://")

    @app.step
    async def same(text: str) -> str:
        return text

    @app.workflow
    async def flow(ctx: weft.Context, text: str) -> int:
        found = await same(text)
        await ctx.receive("go")
        return len(found)

    assert Desk(app).across_a_crash(flow("x" * size)) == size


def test_equal_contents_are_one_blob() -> None:
    app = weft.App("memory://")

    @app.step
    async def same(text: str) -> str:
        return text

    @app.workflow
    async def flow(text: str) -> str:
        for _ in range(5):
            text = await same(text)
        return text

    desk = Desk(app)
    desk.run(flow(BIG))
    assert len(desk.store.content.blobs) <= 2


def test_a_users_own_json_that_looks_like_a_reference_comes_back_as_it_was() -> None:
    app = weft.App("memory://")
    tricky = {"$weft": "blob", "at": "cas://sha256:" + "0" * 64, "size": 3}

    @app.step
    async def same(value: dict[str, Any]) -> dict[str, Any]:
        return value

    @app.workflow
    async def flow(ctx: weft.Context, value: dict[str, Any]) -> list[Any]:
        found = [await same(value), await ctx.receive("n")]
        answer = await ctx.ask("q", title="?", form=dict[str, Any])
        await ctx.receive("go")
        return [value, *found, answer.form]

    async def begin() -> None:
        run = await app.start(flow(tricky), id="run")
        await run.send("n", tricky)
        await calm()
        await run.decide("q", approved=True, form=tricky)

    async def end() -> Any:
        run = app.get("run")
        await run.send("go")
        return await run.result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(end) == [tricky] * 4


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), "a\0", "\ud800", {1: "a", "1": "b"}])
def test_what_no_store_can_hold_is_refused_at_every_door(value: Any) -> None:
    app = weft.App("memory://")

    @app.step(retries=0)
    async def take(value: Any) -> None: ...

    @app.step(retries=0)
    async def give() -> Any:
        return value

    @app.workflow
    async def flow(how: str, value: Any = None) -> Any:
        if how == "take":
            await take(given[0])
        if how == "give":
            await give()
        return given[0]

    given = [value]
    with pytest.raises(weft.BadValue):
        flow("x", value)  # type: ignore[unused-coroutine]
    assert Desk(app).fail(flow("take")).type == "BadValue"
    assert Desk(app).fail(flow("give")).type in {"StepFailed", "BadValue"}
    assert Desk(app).fail(flow("return")).type == "BadValue"


def test_a_workflow_that_returns_another_type_than_it_says_fails() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow() -> int:
        return "seven"  # type: ignore[return-value]

    failure = Desk(app).fail(flow())
    assert failure.type == "BadValue"
    assert "flow returned" in failure.message


def test_a_value_changed_after_it_was_given_is_what_it_was() -> None:
    app = weft.App("memory://")

    @app.step
    async def count(items: list[int]) -> int:
        return len(items)

    @app.workflow
    async def flow() -> int:
        items = [1]
        call = count(items)
        items.append(2)
        return await call

    assert Desk(app).run(flow()) == 1


def test_a_step_gets_a_value_of_its_own() -> None:
    app = weft.App("memory://")

    @app.step
    async def spoil(items: list[int]) -> None:
        items.append(99)

    @app.workflow
    async def flow() -> list[int]:
        items = [1]
        await spoil(items)
        return items

    assert Desk(app).run(flow()) == [1]
