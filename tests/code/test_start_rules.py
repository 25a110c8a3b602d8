"""Rules about starts: singletons, debounced starts and batches, as users declare and meet them."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import weft
from tests.scale import scaled
from weft.testing import World, crash_everywhere

Make = Callable[[], Coroutine[Any, Any, Any]]


def shop(**rule: Any) -> tuple[weft.App, weft.Workflow[..., Any]]:
    """An app with a workflow that waits for a message, and returns its arguments and the message."""
    app = weft.App("memory://")

    @app.workflow(**rule)
    async def sync(ctx: weft.Context, customer: str, n: int = 0) -> str:
        return f"{customer} {n} {await ctx.receive('go', str)}"

    return app, sync


def listing(**rule: Any) -> tuple[weft.App, weft.Workflow[..., Any]]:
    """An app with a workflow that takes a list."""
    app = weft.App("memory://")

    @app.workflow(**rule)
    async def index(items: list[str]) -> str:
        return "+".join(items)

    return app, index


def refusal(world: World, make: Make) -> weft.WeftError:
    with pytest.raises(weft.WeftError) as caught:
        world.perform(make)
    return caught.value


# --- singletons -------------------------------------------------------------------------------------------------------


def test_a_second_start_with_the_key_of_an_open_run_gets_that_run() -> None:
    app, sync = shop(singleton=weft.Singleton("customer"))
    world = World(app)

    first = world.start(sync("ann", 1))
    second = world.start(sync("ann", 2))
    other = world.start(sync("bob", 3))

    assert (second.id, other.id != first.id) == (first.id, True)
    first.send("go", "now")
    assert second.result() == "ann 1 now"


def test_a_start_after_the_run_has_ended_makes_a_new_run() -> None:
    app, sync = shop(singleton=weft.Singleton("customer"))
    world = World(app)
    first = world.start(sync("ann", 1))
    first.send("go", "now")
    first.result()

    assert world.start(sync("ann", 2)).id != first.id


def test_a_singleton_without_a_key_allows_one_open_run_in_all() -> None:
    app, sync = shop(singleton=weft.Singleton())
    world = World(app)

    assert world.start(sync("ann")).id == world.start(sync("bob")).id


def test_a_refused_start_names_the_open_run() -> None:
    app, sync = shop(singleton=weft.Singleton("customer", then="refuse"))
    world = World(app)
    first = world.start(sync("ann"), id="ann-1")

    error = refusal(world, lambda: app.start(sync("ann")))

    assert isinstance(error, weft.RunOpen)
    assert (error.code, error.context["run_id"]) == ("run.open", first.id)
    assert "ann-1 is open with the same key 'ann'" in error.message


def test_a_start_that_replaces_cancels_the_open_run_and_runs_after_it() -> None:
    app, sync = shop(singleton=weft.Singleton("customer", then="replace"))
    world = World(app)
    first = world.start(sync("ann", 1))
    second = world.start(sync("ann", 2))

    assert (first.status, second.status) == ("cancelled", "running")
    second.send("go", "now")
    assert second.result() == "ann 2 now"
    with pytest.raises(weft.RunCancelled, match=f"replaced by {second.id}"):
        first.result()


def test_a_run_that_replaces_waits_until_the_other_has_undone_its_work() -> None:
    app = weft.App("memory://")
    log: list[str] = []

    @app.step
    async def book(n: int) -> None:
        log.append(f"book {n}")

    @book.undo
    async def release(n: int) -> None:
        log.append(f"release {n}")

    @app.workflow(singleton=weft.Singleton(then="replace"))
    async def trip(ctx: weft.Context, n: int) -> None:
        await book(n)
        await ctx.receive("go")

    world = World(app)
    world.start(trip(1))
    world.settle()
    world.start(trip(2))
    world.settle()

    assert log == ["book 1", "release 1", "book 2"]


def test_a_replaced_run_that_has_not_begun_never_runs_its_code() -> None:
    app, sync = shop(singleton=weft.Singleton("customer", then="replace"))
    world = World(app)

    async def starts() -> list[weft.Handle[str]]:
        return [await app.start(sync("ann", n), delay="1m" if n == 1 else None) for n in (1, 2)]

    first, second = world.perform(starts)

    assert world.perform(first.status) == "cancelled"
    kinds = [event.kind for event in world.start(sync("ann", 3), id=second.id + "x").events]
    assert kinds[0] == "run_started"


def test_an_id_is_judged_before_the_key() -> None:
    app, sync = shop(singleton=weft.Singleton("customer", then="refuse"))
    world = World(app)
    first = world.start(sync("ann", 1), id="mine")

    assert world.start(sync("ann", 1), id="mine").id == first.id
    assert isinstance(refusal(world, lambda: app.start(sync("ann", 2), id="mine")), weft.IdTaken)


def test_a_repeated_start_under_its_id_finds_the_run_that_took_it_even_after_its_end() -> None:
    app, sync = shop(singleton=weft.Singleton("customer"))
    world = World(app)
    first = world.start(sync("ann", 1))
    world.start(sync("ann", 2), id="mine")
    first.send("go", "now")
    first.result()

    assert world.start(sync("ann", 2), id="mine").id == first.id
    error = refusal(world, lambda: app.start(sync("ann", 3), id="mine"))
    assert isinstance(error, weft.IdTaken)
    assert first.id in error.message


def test_a_failed_run_is_not_retried_while_another_has_its_key() -> None:
    app = weft.App("memory://")

    @app.workflow(singleton=weft.Singleton("customer"))
    async def sync(ctx: weft.Context, customer: str) -> str:
        if await ctx.receive("go", str) == "fail":
            raise ValueError("as told")
        return customer

    world = World(app)
    first = world.start(sync("ann"))
    first.send("go", "fail")
    assert first.status == "failed"
    second = world.start(sync("ann"))
    assert isinstance(refusal(world, lambda: app.get(first.id).retry()), weft.RunOpen)

    second.send("go", "well")
    second.result()
    world.perform(lambda: app.get(first.id).retry())
    assert world.start(sync("ann")).id == first.id


def test_a_child_run_takes_the_key_or_fails_if_another_run_has_it() -> None:
    app, sync = shop(singleton=weft.Singleton("customer"))

    @app.workflow
    async def parent(ctx: weft.Context) -> str:
        return await sync("ann", 7)

    world = World(app)
    outer = world.start(parent())
    child = world.start(sync("ann", 8))  # attaches to the child
    assert child.id.startswith(outer.id)
    failing = world.start(parent())
    with pytest.raises(weft.RunFailed, match="is open with the same key"):
        failing.result()
    child.send("go", "now")
    assert outer.result() == "ann 7 now"


def test_a_scheduled_run_takes_the_key_too() -> None:
    app, sync = shop(singleton=weft.Singleton("customer"))
    app.schedule("often", sync("ann"), every="1h")
    world = World(app)
    world.advance("1h")

    assert world.start(sync("ann", 5)).id.startswith("often/")


# --- debounced starts -------------------------------------------------------------------------------------------------


def test_a_debounced_run_starts_after_quiet_with_the_newest_input() -> None:
    app, sync = shop(debounce=weft.Debounce("10s", "customer"))
    world = World(app)
    first = world.start(sync("ann", 1))
    world.advance("9s")
    second = world.start(sync("ann", 2))
    world.advance("9s")
    assert (second.id, first.status) == (first.id, "pending")

    world.advance("1s")
    assert first.status == "running"
    first.send("go", "now")
    assert first.result() == "ann 2 now"


def test_a_debounced_run_starts_at_the_latest_some_time_after_its_first_start() -> None:
    app, sync = shop(debounce=weft.Debounce("10s", "customer", at_most="25s"))
    world = World(app)
    runs = []
    for n in range(3):
        runs.append(world.start(sync("ann", n)))
        world.advance("9s")

    assert {run.id for run in runs} == {runs[0].id}
    assert runs[0].status == "running"
    runs[0].send("go", "now")
    assert runs[0].result() == "ann 2 now"


def test_a_start_after_the_debounced_run_has_begun_begins_another_quiet_time() -> None:
    app, sync = shop(debounce=weft.Debounce("10s", "customer"))
    world = World(app)
    first = world.start(sync("ann", 1))
    world.advance("10s")
    second = world.start(sync("ann", 2))

    assert second.id != first.id
    assert (first.status, second.status) == ("running", "pending")


def test_explain_says_why_a_debounced_run_waits() -> None:
    app, sync = shop(debounce=weft.Debounce("10s", "customer", at_most="1m"))
    world = World(app)
    run = world.start(sync("ann", 1))

    explained = world.perform(lambda: app.get(run.id).explain())

    assert explained.status == "pending"
    assert "it starts at 2026-01-01 00:00:10 UTC with the newest input" in explained.summary
    assert "unless there is another start with the key 'ann' until then" in explained.summary
    assert "at the latest at 2026-01-01 00:01:00" in explained.summary


# --- batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_runs_once_with_the_items_of_all_starts_in_order() -> None:
    app, index = listing(batch=weft.Batch(size=10, wait="5s"))
    world = World(app)
    runs = [world.start(index([text])) for text in "abc"]

    assert {run.id for run in runs} == {runs[0].id}
    assert runs[0].status == "pending"
    assert runs[2].result() == "a+b+c"


def test_a_full_batch_runs_at_once() -> None:
    app, index = listing(batch=weft.Batch(size=2, wait="1h"))
    world = World(app)
    runs = [world.start(index([text])) for text in "abc"]

    assert [run.status for run in runs] == ["completed", "completed", "pending"]
    assert [run.result() for run in runs] == ["a+b", "a+b", "c"]


def test_the_items_of_one_start_stay_together() -> None:
    app, index = listing(batch=weft.Batch(size=3, wait="1h"))
    world = World(app)
    runs = [world.start(index(list(text))) for text in ("ab", "cd", "e")]

    assert [run.result() for run in runs] == ["a+b", "c+d+e", "c+d+e"]


def test_the_key_of_a_batch_is_that_of_its_items() -> None:
    app = weft.App("memory://")

    @app.workflow(batch=weft.Batch(size=10, wait="5s", key="customer"))
    async def index(items: list[dict[str, str]]) -> str:
        return "+".join(item["text"] for item in items)

    world = World(app)
    runs = [world.start(index([{"customer": who, "text": text}])) for who, text in ("xa", "yb", "xc")]

    assert [run.result() for run in runs] == ["a+c", "b", "a+c"]
    mixed = [{"customer": "x", "text": "a"}, {"customer": "y", "text": "b"}]
    assert refusal(world, lambda: app.start(index(mixed))).code == "start.bad_key"


def test_a_large_batch_of_large_items_is_stored_as_a_blob() -> None:
    app, index = listing(batch=weft.Batch(size=20, wait="5s"))
    world = World(app)
    runs = [world.start(index([text * 10_000])) for text in "abcdefghij"]

    assert runs[0].result() == "+".join(text * 10_000 for text in "abcdefghij")


def test_explain_says_how_many_inputs_a_batch_has() -> None:
    app, index = listing(batch=weft.Batch(size=10, wait="5s"))
    world = World(app)
    run = world.start(index(["a"]))
    world.start(index(["b", "c"]))

    summary = world.perform(lambda: app.get(run.id).explain()).summary

    assert summary == "it collects inputs (3 of 10 so far), and starts at 2026-01-01 00:00:05 UTC or when it is full"


def test_a_cancelled_batch_never_runs() -> None:
    app, index = listing(batch=weft.Batch(size=10, wait="5s"))
    world = World(app)
    run = world.start(index(["a"]))
    world.start(index(["b"]))
    run.cancel("not needed")

    assert run.status == "cancelled"
    assert world.start(index(["c"])).id != run.id


# --- keys and bad input -----------------------------------------------------------------------------------------------


def test_a_key_may_be_a_function_of_the_arguments_and_is_called_once_for_each_start() -> None:
    asked: list[str] = []
    app, sync = shop(singleton=weft.Singleton(lambda customer, n: asked.append(customer) or customer.lower()))
    world = World(app)

    assert world.start(sync("ann")).id == world.start(sync("ANN")).id
    assert asked == ["ann", "ANN"]


def test_a_key_reads_the_defaults_of_arguments_that_were_left_out() -> None:
    app, sync = shop(singleton=weft.Singleton("n"))
    world = World(app)

    assert world.start(sync("ann")).id == world.start(sync("bob", 0)).id


def test_a_key_that_fails_on_an_input_starts_nothing() -> None:
    app, sync = shop(singleton=weft.Singleton("customer.name"))
    world = World(app)

    error = refusal(world, lambda: app.start(sync("ann")))

    assert (type(error), error.code) == (weft.BadValue, "start.bad_key")
    assert "its key `customer.name` fails on this input" in error.message
    assert world.perform(lambda: _ids(app)) == []


@pytest.mark.parametrize("raised", [KeyError("ann"), SystemExit(3), asyncio.CancelledError()], ids=repr)
def test_a_function_that_raises_starts_nothing(raised: BaseException) -> None:
    def key(customer: str, n: int) -> str:
        raise raised

    app, sync = shop(singleton=weft.Singleton(key))
    world = World(app)

    assert refusal(world, lambda: app.start(sync("ann"))).code == "start.bad_key"


@pytest.mark.parametrize("key", ["[1]", "null", "{'a': 1}"])
def test_a_key_must_be_text_a_number_or_a_boolean(key: str) -> None:
    app, sync = shop(singleton=weft.Singleton(key))
    world = World(app)

    assert refusal(world, lambda: app.start(sync("ann"))).code == "start.bad_key"


@pytest.mark.parametrize("items", [[], ["a"] * 3])
def test_a_start_brings_one_item_or_as_many_as_fit(items: list[str]) -> None:
    app, index = listing(batch=weft.Batch(size=2, wait="5s"))
    world = World(app)

    assert refusal(world, lambda: app.start(index(items))).code == "start.bad_batch"


def test_items_that_could_not_all_fit_into_one_input_are_refused() -> None:
    app, index = listing(batch=weft.Batch(size=10_000, wait="5s"))
    world = World(app)

    assert refusal(world, lambda: app.start(index(["x" * 2_000]))).code == "start.batch_too_big"


def test_a_debounced_start_takes_no_delay() -> None:
    app, sync = shop(debounce=weft.Debounce("10s"))
    world = World(app)

    assert refusal(world, lambda: app.start(sync("ann"), delay="1m")).code == "start.delayed"


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"singleton": weft.Singleton(), "debounce": weft.Debounce("1s")}, "start.bad_rule"),
        ({"singleton": weft.Singleton(then="wait")}, "start.bad_rule"),  # type: ignore[arg-type]
        ({"singleton": "customer"}, "start.bad_rule"),
        ({"singleton": weft.Singleton("nobody")}, "start.bad_rule"),
        ({"singleton": weft.Singleton("1 +")}, "start.bad_rule"),
        ({"debounce": weft.Debounce(0)}, "value.bad_duration"),
        ({"debounce": weft.Debounce("soon")}, "value.bad_duration"),
        ({"debounce": weft.Debounce("10s", at_most="5s")}, "start.bad_rule"),
        ({"batch": weft.Batch(size=0, wait="5s")}, "start.bad_rule"),
        ({"batch": weft.Batch(size=2, wait="0s")}, "value.bad_duration"),
        ({"batch": weft.Batch(size=2, wait="5s")}, "start.bad_rule"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_where_it_is_declared(rule: dict[str, Any], code: str) -> None:
    with pytest.raises(weft.UsageError) as caught:
        shop(**rule)

    assert caught.value.code == code


# --- crashes ----------------------------------------------------------------------------------------------------------


def test_a_replaced_run_and_its_successor_survive_a_crash_at_every_write() -> None:
    app, sync = shop(singleton=weft.Singleton("customer", then="replace"))

    def scenario(world: World) -> None:
        first = world.start(sync("ann", 1))
        world.settle()
        second = world.start(sync("ann", 2))
        second.send("go", "now")
        assert second.result() == "ann 2 now"
        assert first.status == "cancelled"
        assert sorted(world.perform(lambda: _ids(app))) == sorted([first.id, second.id])

    assert crash_everywhere(app, scenario) > 5


def test_a_debounced_run_survives_a_crash_at_every_write() -> None:
    app, sync = shop(debounce=weft.Debounce("10s", "customer"))

    def scenario(world: World) -> None:
        runs = [world.start(sync("ann", n)) for n in (1, 2, 3)]
        runs[0].send("go", "now")
        assert {run.result() for run in runs} == {"ann 3 now"}
        assert world.perform(lambda: _ids(app)) == [runs[0].id]

    assert crash_everywhere(app, scenario) > 5


def test_a_batch_survives_a_crash_at_every_write() -> None:
    app, index = listing(batch=weft.Batch(size=3, wait="5s"))

    def scenario(world: World) -> None:
        runs = [world.start(index([text])) for text in "abcd"]
        assert [run.result() for run in runs] == ["a+b+c", "a+b+c", "a+b+c", "d"]

    assert crash_everywhere(app, scenario) > 5


@pytest.mark.parametrize("seed", range(scaled(5, 100)))
def test_random_starts_and_restarts_break_no_rule(seed: int) -> None:
    """An oracle watches which runs are under way, and which inputs and items they got."""
    dice = random.Random(seed)
    app = weft.App("memory://")
    under_way: dict[str, set[str]] = {}
    seen: dict[str, list[int]] = {}
    newest: dict[str, int] = {}

    @app.workflow(singleton=weft.Singleton("key", then=dice.choice(["attach", "replace"])))
    async def single(ctx: weft.Context, key: str, n: int) -> None:
        under_way.setdefault(key, set()).add(ctx.run_id)
        assert len(under_way[key]) == 1, under_way
        try:
            await ctx.sleep(f"{n % 7 + 1}s")
        finally:
            if not ctx.evicted:
                under_way[key].discard(ctx.run_id)

    @app.workflow(debounce=weft.Debounce("3s", "key", at_most="7s"))
    async def calm(ctx: weft.Context, key: str, n: int) -> None:
        seen[ctx.run_id] = [n]

    @app.workflow(batch=weft.Batch(size=4, wait="3s"))
    async def many(ctx: weft.Context, items: list[int]) -> None:
        seen[ctx.run_id] = items

    world = World(app, seed)
    given: list[int] = []
    for n in range(60):
        key = dice.choice("xyz")
        match dice.randrange(5):
            case 0:
                world.start(single(key, n))
            case 1:
                newest[world.start(calm(key, n)).id] = n
            case 2 | 3:
                run = world.start(many([n]))
                given.append(n)
                assert n in seen.get(run.id, [n])
            case _:
                world.restart()
                under_way.clear()
        world.advance(dice.choice(["0s", "1s", "2s"]))
    world.advance("2m")

    items = [item for run, found in seen.items() if run.startswith("many") for item in found]
    assert sorted(items) == given
    assert all(len(found) <= 4 for found in seen.values())
    assert {run: [n] for run, n in newest.items()} == {run: found for run, found in seen.items() if "calm" in run}


# --- priorities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", [1_001, 1.5, "high", True])
def test_a_priority_is_a_whole_number(priority: Any) -> None:
    app, sync = shop()
    world = World(app)

    assert refusal(world, lambda: app.start(sync("ann"), priority=priority)).code == "value.bad_policy"


async def _ids(app: weft.App) -> list[str]:
    return [run.id async for run in app.list()]


# --- processes without the code ---------------------------------------------------------------------------------------


def test_a_client_without_the_code_obeys_the_stored_rule(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    app = weft.App(url)

    @app.workflow(singleton=weft.Singleton("customer"))
    async def sync(ctx: weft.Context, customer: str, n: int = 0) -> str:
        return f"{n} {await ctx.receive('go', str)}"

    @app.workflow(singleton=weft.Singleton(lambda customer: customer))
    async def coded(ctx: weft.Context, customer: str) -> None:
        await ctx.receive("go")

    async def play() -> None:
        async with app, weft.Client(url) as client:
            first = await client.start("sync", {"customer": "ann", "n": 1})
            second = await client.start("sync", {"customer": "ann", "n": 2})
            here = await app.start(sync("ann", 3))
            assert first.id == second.id == here.id
            with pytest.raises(weft.BadValue, match="fails on this input"):
                await client.start("sync", {})
            with pytest.raises(weft.UsageError, match="its key is a function"):
                await client.start("coded", {"customer": "ann"})
            await first.send("go", "now")
            assert await first.result() == "1 now"

    asyncio.run(play())


def test_a_rule_that_is_gone_from_the_code_is_gone_from_the_store(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def host(**rule: Any) -> bytes | None:
        app = weft.App(url)

        @app.workflow(**rule)
        async def sync(ctx: weft.Context, customer: str) -> None: ...

        async with app:
            return await app.service.store.starts.rule("sync")

    assert asyncio.run(host(singleton=weft.Singleton("customer"))) is not None
    assert asyncio.run(host(name="sync")) is None


def test_a_key_that_is_no_expression_names_its_workflow() -> None:
    with pytest.raises(weft.UsageError, match="The key 'customer =' of sync is not a CEL expression"):
        shop(singleton=weft.Singleton("customer ="))
