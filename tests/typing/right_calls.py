"""What the checkers must infer: every call keeps the types of the function behind it. Checked, never run."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_type
from uuid import UUID

import weft

app = weft.App("memory://", durability="fast", replay="tolerant")
group = weft.Group(prefix="shop.")
app.include(group)


@dataclass
class Receipt:
    id: str
    cents: int


class CardDeclined(Exception): ...


@app.step
def pack(item: str, times: int = 1) -> list[str]:
    return [item] * times


@app.step
async def charge(order_id: str, cents: int) -> Receipt:
    return Receipt(order_id, cents)


@group.step(
    name="mail",
    retries=weft.Retry(5, backoff="linear", delay="1s", max_delay=timedelta(minutes=1)),
    timeout=30,
    queue="mail",
    raises=[CardDeclined],
    effect="irreversible",
    run_in="thread",
)
def mail(to: str) -> None:
    task = weft.task()
    assert_type(task.key, str)
    assert_type(task.attempt, int)
    task.heartbeat()


@charge.undo
async def refund(order_id: str, result: Receipt) -> None: ...


@app.workflow
async def order(ctx: weft.Context, order_id: str, cents: int = 100) -> str:
    return order_id


@app.on("run_failed", "dead_letter", workflow=order, where="attributes.region == 'eu'")
async def notify(event: weft.HookEvent) -> int:
    assert_type(event.error, weft.Failure | None)
    assert_type(event.question, weft.HookQuestion | None)
    assert_type(event.summary, str)
    return event.number


@group.on("run_completed", name="ends", tenant="acme")
@app.step(retries=9)
def note(event: weft.HookEvent) -> None: ...


async def call_hooks(event: weft.HookEvent) -> None:
    assert_type(await notify(event), int)
    assert_type(await note(event), None)


@app.workflow(name="plain", version="2", timeout="1d")
async def plain(order_id: str) -> Receipt:
    return Receipt(order_id, 1)


@app.workflow(version="3")
async def with_context(ctx: weft.Context) -> int:
    return 1


async def page(at: Receipt) -> weft.Turn[Receipt, int]:
    if at.cents:
        return weft.again(Receipt(at.id, at.cents - 1))
    return weft.done(at.cents)


def of_registered_things() -> None:
    steps = (pack("soup"), charge("o-1", cents=1), mail("a@b.c"), pack.options(name="box", timeout="2m")("soup"))
    assert_type(steps, tuple[weft.Call[list[str]], weft.Call[Receipt], weft.Call[None], weft.Call[list[str]]])
    workflows = (order("o-1"), order("o-1", cents=1), plain("o-1"), with_context())
    assert_type(workflows, tuple[weft.Call[str], weft.Call[str], weft.Call[Receipt], weft.Call[int]])
    assert_type(app.run(order("o-1"), id="o"), str)
    assert_type(app.run(plain, {"order_id": "o-1"}), Receipt)
    assert_type(app.run("order", {"order_id": "o-1"}), Any)
    assert_type(pack.name, str)
    assert_type(order.name, str)


async def outside() -> None:
    assert_type(await charge("o-1", 1), Receipt)
    assert_type(await order("o-1"), str)
    async with app:
        handle = await app.start(plain("o-1"), id="p", existing="refuse", attributes={"city": "Kiel"}, delay="1h")
        assert_type(handle, weft.Handle[Receipt])
        assert_type(await handle.result(timeout="5s"), Receipt)
        assert_type(await app.start(order, {"order_id": "o-1"}), weft.Handle[str])
        assert_type(await app.start("order", {"order_id": "o-1"}), weft.Handle[Any])
        assert_type(app.get("p", plain), weft.Handle[Receipt])
        assert_type(app.get("p"), weft.Handle[Any])
        async for found in app.list(workflow=order, status="running", since=timedelta(days=1), where={"city": "Kiel"}):
            assert_type(found, weft.Handle[Any])
        assert_type(handle.events(after=1, follow=True), AsyncIterator[weft.Event])
        assert_type(await handle.explain(), weft.Explanation)
        await handle.send("quote", {"cents": 1}, key="k-1")
        await handle.cancel("no longer wanted")
    async with weft.Client("sqlite:///weft.db") as client:
        assert_type(await client.start("order", {"order_id": "o-1"}, id="x"), weft.Handle[Any])


class Pool:
    async def fetch(self) -> list[str]:
        return []


@app.resource
async def database() -> AsyncIterator[Pool]:
    yield Pool()


@group.resource(name="replica")
async def second(database: Pool) -> AsyncIterator[Pool]:
    yield database


@app.step
async def customers(country: str, *, pool: Pool = weft.injected) -> list[str]:
    assert_type(pool, Pool)
    return await pool.fetch()


@app.step(retries=1)
def counted(country: str, replica: Pool = weft.injected) -> int:
    return len(country)


def with_resources() -> None:
    assert_type(database, weft.Resource[Pool])
    assert_type(second, weft.Resource[Pool])
    assert_type(database.name, str)
    assert_type((customers("DE"), counted("DE")), tuple[weft.Call[list[str]], weft.Call[int]])


def blocking() -> None:
    handle = app.sync.start(plain("o-1"), id="p", existing="refuse", attributes={"city": "Kiel"}, delay="1h")
    assert_type(handle, weft.BlockingHandle[Receipt])
    assert_type(handle.id, str)
    assert_type(handle.result(timeout="5s"), Receipt)
    assert_type(handle.fork(at=3), weft.BlockingHandle[Receipt])
    assert_type(handle.status(), str)
    assert_type(handle.explain(), weft.Explanation)
    assert_type(handle.events(after=1, follow=True), Iterator[weft.Event])
    handle.send("quote", {"cents": 1}, key="k-1")
    handle.decide("ship", approved=True, by="ann")
    handle.cancel("no longer wanted", force=True)
    assert_type(app.sync.start(order, {"order_id": "o-1"}), weft.BlockingHandle[str])
    assert_type(app.sync.start("order", {"order_id": "o-1"}), weft.BlockingHandle[Any])
    assert_type(app.sync.get("p", plain), weft.BlockingHandle[Receipt])
    assert_type(app.sync.get("p"), weft.BlockingHandle[Any])
    for found in app.sync.list(workflow=order, status="running", since=timedelta(days=1)):
        assert_type(found, weft.BlockingHandle[Any])
    assert_type(app.sync.bulk("cancel", "a", "b").apply().result(), weft.BulkResult)
    assert_type(app.sync.schedules.add("nightly", order, cron="0 3 * * *"), weft.AddedSchedule)
    assert_type(app.sync.schedules.trigger("nightly"), weft.BlockingHandle[Any])
    with app.sync as opened:
        assert_type(opened, weft.BlockingApp)
    with weft.Client("sqlite:///weft.db").sync as client:
        assert_type(client, weft.BlockingClient)
        assert_type(client.start("order", {"order_id": "o-1"}, id="x"), weft.BlockingHandle[Any])
        assert_type(client.plan("total", given={"a": 1}), weft.Plan)
        client.export("x", "x.weft", tree=True)


@app.workflow
async def inside(ctx: weft.Context) -> None:
    assert_type(ctx.run_id, str)
    assert_type(ctx.scheduled_at, datetime | None)
    assert_type(weft.context(), weft.Context)
    assert_type(await ctx.step("inline", lambda: 1, retries=0, timeout="1s", effect="pure"), int)
    assert_type(await ctx.step("inline", lambda: charge.fn("o-1", 1), ephemeral=True), Any)
    assert_type(await ctx.step("sleepy", sleepy), str)
    assert_type(await ctx.try_step(charge("o-1", 1)), weft.Ok[Receipt] | weft.Err)
    assert_type(await ctx.receive("anything"), Any)
    assert_type(await ctx.receive("quote", Receipt, timeout="1h"), Receipt)
    assert_type(await ctx.receive("quote", Receipt, timeout="1h", default=None), Receipt | None)
    assert_type(await ctx.messages("quote", "stop", most=5, timeout=1), list[weft.Message])
    assert_type(await ctx.receive("quote", Receipt, answer=True), weft.Message[Receipt])
    assert_type(await ctx.receive("quote", Receipt, answer=True, default=None), weft.Message[Receipt] | None)
    assert_type(await (await ctx.receive("quote", answer=True)).answer(1), None)
    assert_type(await ctx.send("run-1", "quote", {"cents": 1}), None)
    assert_type((await ctx.ask("ship", title="Ship?")).form, None)
    answer = await ctx.ask("ship", title="Ship?", form=Receipt, of=["role:ops"], timeout="2d", on_timeout="reject")
    assert_type(answer, weft.Answer[Receipt])
    assert_type(answer.by, list[str])
    assert_type(await ctx.join("two", charge("o-1", 1), pack("soup")), tuple[Receipt, list[str]])
    assert_type(await ctx.join("three", charge("o-1", 1), pack("soup"), order("o-1")), tuple[Receipt, list[str], str])
    assert_type(await ctx.join("many", {"a": pack("soup"), "b": pack("cake")}, timeout="1h"), dict[str, list[str]])
    assert_type(await ctx.race("fastest", {"a": pack("soup"), "b": pack("cake")}), weft.Winner[list[str]])
    assert_type(await ctx.map("each", pack, ["soup"], width=2), list[list[str]])
    assert_type(await ctx.map_outcomes("each", pack, ["soup"]), list[weft.Ok[list[str]] | weft.Err])
    assert_type(await ctx.loop("pages", page, state=Receipt("", 9), keep=5), int)
    assert_type(await ctx.call(plain("o-1"), id="c", timeout="1d"), Receipt)
    assert_type(await ctx.call(plain, {"order_id": "o-1"}), Receipt)
    assert_type(await ctx.call("plain", {"order_id": "o-1"}), Any)
    assert_type(await (await ctx.spawn(plain("o-1"))).result(), Receipt)
    assert_type(await (await ctx.spawn("plain", {"order_id": "o-1"})).result(), Any)
    both = await asyncio.gather(pack("soup"), pack("cake"))
    assert_type(both, tuple[list[str], list[str]])
    assert_type(await asyncio.create_task(charge("o-1", 1)), Receipt)
    assert_type(await ctx.now(), datetime)
    assert_type(await ctx.random(), float)
    assert_type(await ctx.uuid(), UUID)
    assert_type(await ctx.version("price", 2), int)
    await ctx.removed("old", "step")
    await ctx.set(city="Kiel", vip=True)
    await ctx.sleep(timedelta(hours=1))


async def sleepy() -> str:
    return "z"
