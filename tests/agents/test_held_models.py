"""A provider that asks to wait is not asked before that by anybody, and a model's limit holds for all of its calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.agents.model_kit import asking, user
from tests.agents.model_workflow import ask
from tests.agents.scripted_server import refused
from tests.agents.test_conversation_view import view
from tests.agents.test_fake_models import said
from tests.steps.http_kit import go
from weft.core.ids import Millis
from weft.observe.explanation import Explanation
from weft.ports.models import ModelRequest
from weft.runtime.held_models import SPREAD_MS, HeldModels
from weft.stores.memory import MemoryStore
from weft.testing import World, calls, crash_everywhere
from weft.testing.world import SimRun

app = weft.App()
app.model("fast", url="http://127.0.0.1:9/v1", retries=weft.Retry(3, "fixed", "1s"))
app.model("narrow", url="http://127.0.0.1:9/v1", limit=weft.Limit(concurrency=1))
app.model("spare", url="http://127.0.0.1:9/v1", fallback=["wide"])
app.model("wide", url="http://127.0.0.1:9/v1")

helper = app.agent("helper", model="spare")
asker = app.agent("asker", model="spare", tools=[weft.person(of=["ann"])])

WAIT = weft.ModelFailed("busy", is_transient=True, retry_after_ms=60_000)


@app.workflow
async def one(ctx: weft.Context, alias: str) -> str:
    reply = await ask(app.registered.models.aliases.get(alias), add=[said("hello")])
    text: str = reply["text"]
    return text


def test_retry_after_holds_the_calls_of_all_runs() -> None:
    world = World(app)
    world.fake_model("fast", WAIT, "one", "two")
    begin = world.now_ms
    first = world.start(one("fast"))
    world.settle()
    second = world.start(one("fast"))
    world.advance("59s")
    assert len(world.model_calls("fast")) == 1

    assert {first.result(), second.result()} == {"one", "two"}
    assert 60_000 <= world.now_ms - begin <= 60_000 + SPREAD_MS


def test_a_model_that_is_held_leaves_the_next_call_to_its_fallback_at_once() -> None:
    world = World(app)
    world.fake_model("spare", WAIT, "one")
    first = world.start(one("spare"))
    world.settle()
    begin = world.now_ms

    with pytest.raises(weft.RunFailed, match="its provider asked to wait"):
        world.run(one("spare"))
    assert world.now_ms == begin
    assert len(world.model_calls("spare")) == 1
    assert first.result() == "one"


def test_an_agent_whose_model_is_held_asks_the_fallback_and_later_the_first_again() -> None:
    world = World(app)
    world.fake_model("spare", WAIT, "first", "again")
    world.fake_model("wide", "instead")
    world.start(one("spare"))
    world.settle()
    begin = world.now_ms

    assert world.run(helper("hello")).output == "instead"
    assert world.now_ms == begin

    world.advance("2m")
    assert world.run(helper("hello")).output == "again"


def test_explain_and_the_conversation_say_why_the_fallback_answered() -> None:
    world = World(app)
    world.fake_model("spare", weft.ModelFailed("no quota", status=429), "again")
    world.fake_model("wide", calls(ask_person={"question": "Which?"}))
    run = world.start(asker("hello"))
    assert len(run.waiting_for()) == 1

    why = "spare did not answer (no quota), so wide was asked"
    explanation = explained(world, run)
    assert explanation.path == [f"turn 0: {why}"]
    assert f"turn 0: {why}" in str(explanation)
    assert [str(passed) for passed in view(world, app, run.id).turns[0].passed_models] == [why]

    run.answer(run.waiting_for()[0].location, form={"answer": "That."}, by="ann")
    assert run.result().output == "again"
    turns = view(world, app, run.id).turns
    assert [len(turn.passed_models) for turn in turns] == [1, 0]


def test_a_hold_concerns_no_other_model() -> None:
    world = World(app)
    world.fake_model("fast", WAIT, "one")
    world.fake_model("wide", "two")
    world.start(one("fast"))
    world.settle()
    begin = world.now_ms

    assert world.run(one("wide")) == "two"
    assert world.now_ms == begin


def test_a_hold_survives_the_process_that_learned_of_it() -> None:
    world = World(app)
    world.fake_model("fast", WAIT, "one", "two")
    world.start(one("fast"))
    world.settle()
    world.restart()
    world.start(one("fast"))
    world.advance("59s")

    assert len(world.model_calls("fast")) == 1


def test_nothing_is_lost_while_a_model_is_held_whatever_crashes() -> None:
    def scenario(world: World) -> None:
        world.fake_model("fast", WAIT, "one", "two", "three")
        assert world.run(one("fast")) in ("one", "two", "three")

    assert crash_everywhere(app, scenario) > 2


def test_a_hold_of_one_host_is_learned_by_the_others() -> None:
    class Clock:
        now = 1_000_000

        def now_ms(self) -> Millis:
            return Millis(self.now)

        def monotonic(self) -> float:
            return 0.0

    async def scenario() -> None:
        store, clock = MemoryStore(), Clock()
        here, there = (HeldModels(store.memos, clock, lambda: ["fast"]) for _ in range(2))
        await here.hold("fast", 10_000)
        await here.hold("fast", 2_000)
        assert here.queues() == ["model.fast"]
        assert there.queues() == []

        await there.refresh()
        due = there.due("model.fast", "a")
        assert due is not None
        assert 1_010_000 <= due < 1_010_000 + SPREAD_MS
        assert there.due("model.fast", "b") != due
        assert there.due("model.other", "a") is None

        clock.now += 10_000
        assert there.due("model.fast", "a") is None
        assert not there.any

    go(scenario())


def test_the_step_holds_its_model_for_as_long_as_the_provider_asks() -> None:
    async def scenario() -> None:
        async with asking(refused(429, Retry_After="7"), refused(503)) as asked:
            for _ in range(2):
                with pytest.raises(weft.ModelFailed):
                    await asked.perform(add=[said("hello")])
            assert asked.held == [("fast", 7_000)]
            assert user("hello").text == "hello"

    go(scenario())


@pytest.mark.parametrize(("alias", "most"), [("narrow", 1), ("wide", 4)])
def test_a_limit_holds_for_all_calls_of_the_model(alias: str, most: int) -> None:
    busy: list[int] = [0, 0]

    async def reply(_: ModelRequest) -> str:
        busy[0] += 1
        busy[1] = max(busy)
        await asyncio.sleep(1)
        busy[0] -= 1
        return "done"

    world = World(app)
    world.fake_model(alias, *[reply] * 4)
    runs: list[Any] = [world.start(one(alias)) for _ in range(4)]

    assert [run.result() for run in runs] == ["done"] * 4
    assert busy[1] == most


def explained(world: World, run: SimRun[str]) -> Explanation:
    return world.perform(lambda: app.get(run.id).explain())


def test_explain_says_that_a_model_is_held_and_until_when() -> None:
    world = World(app)
    world.fake_model("fast", WAIT, "one", "two")
    first = world.start(one("fast"))
    world.settle()
    world.advance("10s")
    second = world.start(one("fast"))
    world.settle()

    (wait,) = explained(world, second).waiting
    assert "waits in the queue model.fast: the provider of the model asked to wait 50s more" in wait.unblock
    assert wait.until is not None
    assert wait.until.timestamp() * 1000 == world.now_ms + 50_000
    (retry,) = explained(world, first).waiting
    assert "busy" in retry.unblock or "asked to wait" in retry.unblock

    assert {first.result(), second.result()} == {"one", "two"}


def test_explain_says_nothing_of_a_hold_for_a_call_that_was_under_way_before() -> None:
    async def slow(_: ModelRequest) -> str:
        await asyncio.sleep(90)
        return "slow"

    world = World(app)
    world.fake_model("fast", slow, WAIT, "again")
    first = world.start(one("fast"))
    world.settle()
    world.advance("1s")
    second = world.start(one("fast"))
    world.settle()
    world.advance("1s")

    (wait,) = explained(world, first).waiting
    assert "running for" in wait.unblock
    assert {first.result(), second.result()} == {"slow", "again"}
