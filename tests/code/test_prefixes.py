"""A recorded run, cut anywhere and taken up again, asks for exactly what it asked for; changed code is noticed."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import weft
from tests import scale
from tests.code.corpus import CONCURRENT, CORPUS, Shop, build
from tests.code.stage import Cut, Stage, Turn, cuts, encoded, replayed
from weft.core import events as e
from weft.core.code.style import ASKED_EVENTS, EVENTS, FORK_EVENTS

pytestmark = scale.MARKS


def recorded(name: str, seed: int, *, cancel: bool = False) -> tuple[weft.App, Stage]:
    app = build(CORPUS[name])
    return app, Stage(app).perform(b"{}", seed, cancel=cancel)


def assert_same_everywhere(app: weft.App, turns: list[Turn], *, snapshot: bool) -> None:
    for at, cut in enumerate(cuts(turns)):
        if not cut.events:
            continue
        _, asked = replayed(app, cut, snapshot=snapshot)
        assert encoded(asked) == encoded(cut.rest), f"cut {at}"


@pytest.mark.parametrize("name", scale.sample(4, sorted(CORPUS)))
@pytest.mark.parametrize("snapshot", [False, True])
def test_cut_between_any_two_commands_the_code_asks_for_the_rest(name: str, snapshot: bool) -> None:
    for seed in range(4):
        app, stage = recorded(name, seed)
        assert stage.machine.state.over or stage.machine.state.status == "running"
        assert_same_everywhere(app, stage.turns, snapshot=snapshot)


@pytest.mark.parametrize("name", scale.sample(4, sorted(CORPUS)))
def test_a_run_that_is_cancelled_somewhere_replays_too(name: str) -> None:
    for seed in range(4):
        app, stage = recorded(name, seed, cancel=True)
        assert_same_everywhere(app, stage.turns, snapshot=False)


def test_the_corpus_uses_everything_that_code_can_record() -> None:
    kinds: set[type] = set()
    for name in CORPUS:
        for cancel in (False, True):
            _, stage = recorded(name, 1, cancel=cancel)
            for turn in stage.turns:
                kinds.update(type(event) for event in turn.outside)
                kinds.update(type(event) for batch in turn.code for event in batch)
    steered = {e.RunPaused, e.RunResumed, e.RunHeld, e.RunRetried, e.RunPatched, e.RunTimedOut, e.TaskLost, e.ResultSet}
    people = {kind for kind in EVENTS if kind.__name__ in ("AskTold", "AskEscalated", "AskReminded")}
    moved = {e.RunMoved, e.RunAdopted}
    budgets = {kind for kind in EVENTS if kind.__name__.startswith("Budget")}  # played by tests/agents
    assert kinds | steered | people | moved | budgets | FORK_EVENTS | ASKED_EVENTS >= EVENTS


@pytest.mark.parametrize("name", scale.sample(2, CONCURRENT))
def test_whatever_the_order_of_facts_a_replay_of_all_of_them_ends_the_same(name: str) -> None:
    """Order of completion is decided by the log; a hundred orders, each played again from every fifth cut."""
    results = set()
    for seed in range(100):
        app, stage = recorded(name, seed, cancel=seed % 3 == 0)
        state = stage.machine.state
        places = cuts(stage.turns)
        for cut in places[seed % 5 :: 5]:
            if cut.events:
                _, asked = replayed(app, cut, snapshot=bool(seed % 2))
                assert encoded(asked) == encoded(cut.rest), f"seed {seed}"
        results.add((state.status, bytes(state.output)))
    assert len(results) > 1 or name in {"gathering", "grouping", "mapping"}


def test_no_order_of_facts_leaves_a_run_waiting_for_nothing() -> None:
    for name in CORPUS:
        for seed in range(scale.scaled(4, 30)):
            _, stage = recorded(name, seed, cancel=seed % 2 == 0)
            state = stage.machine.state
            assert state.status != "held", (name, seed, state.held)
            assert state.over or state.tasks or state.timers or state.waits or state.asks or state.children


# --- deliberate changes of the code ------------------------------------------------------------------------------


async def before(ctx: weft.Context, s: Shop) -> Any:
    async def body(n: int) -> weft.Turn[int, int]:
        await s.other(n)
        return weft.done(n) if n == 2 else weft.again(n + 1)

    found = [await s.work(1), await s.book(2)]
    await ctx.join("both", {"x": s.work(3), "y": s.other(4)})
    await ctx.race("first", {"x": s.work(5), "y": ctx.receive("never")})
    await ctx.loop("rounds", body, state=0, keep=5)
    await ctx.sleep("1s", name="nap")
    await ctx.step("inline", lambda: 1)
    await ctx.call("child", {"n": 7})
    await ctx.receive("never")
    return found


def edited(change: str) -> Any:
    """The workflow ``before`` with one change."""

    async def after(ctx: weft.Context, s: Shop) -> Any:
        async def body(n: int) -> weft.Turn[int, int]:
            await s.other(n)
            return weft.done(n) if n == 2 else weft.again(n + 1)

        if change == "a step becomes a sleep":
            await ctx.sleep("1s", name="work")
        elif change != "a step is dropped":
            await s.work(9 if change == "another argument" else 1)
        await (s.other(2) if change == "another step" else s.book(2))
        if change == "a branch has another argument":
            await ctx.join("both", {"x": s.work(99), "y": s.other(4)})
        elif change == "a branch is renamed":
            await ctx.join("both", {"z": s.work(3), "y": s.other(4)})
        elif change == "a branch is added":
            await ctx.join("both", {"x": s.work(3), "y": s.other(4), "new": s.work(8)})
        else:
            await ctx.join("both", {"x": s.work(3), "y": s.other(4)})
        if change == "the winner is gone":
            await ctx.race("first", {"z": s.work(5), "y": ctx.receive("never")})
        elif change == "the winner asks for something else":
            await ctx.race("first", {"x": s.work(6), "y": ctx.receive("never")})
        else:
            await ctx.race("first", {"x": s.work(5), "y": ctx.receive("never")})
        if change == "a loop becomes a step":
            await ctx.step("rounds", lambda: 1)
        elif change == "a loop is renamed":
            await ctx.loop("circles", body, state=0)
        else:
            await ctx.loop("rounds", body, state=0, keep=5)
        if change == "a sleep becomes a wait":
            await ctx.receive("nap")
        elif change == "a sleep is renamed":
            await ctx.sleep("1s", name="rest")
        else:
            await ctx.sleep("1s", name="nap")
        if change != "an inline step is dropped":
            await ctx.step("inline", lambda: 1)
        if change == "a child gets another argument":
            await ctx.call("child", {"n": 8})
        else:
            await ctx.call("child", {"n": 7})
        await ctx.receive("never")

    return after


DIVERGE = [
    "another argument", "a step becomes a sleep", "a branch has another argument", "the winner is gone",
    "the winner asks for something else", "a loop becomes a step", "a sleep becomes a wait",
    "a child gets another argument",
]  # fmt: skip
QUIET = ["a step is dropped", "a sleep is renamed", "an inline step is dropped"]
ADDED = ["a branch is renamed", "a branch is added", "another step", "a loop is renamed"]


def long_log() -> Cut:
    app = build(before)
    stage = Stage(app).perform(b"{}", 3)
    assert stage.machine.state.status == "running"
    return cuts(stage.turns)[-1]


def held_by(asked: list[list[e.AnyEvent]]) -> list[e.RunHeld]:
    return [event for batch in asked for event in batch if isinstance(event, e.RunHeld)]


def test_the_unchanged_code_asks_for_nothing() -> None:
    _, asked = replayed(build(edited("")), long_log())
    assert asked == []


@pytest.mark.parametrize("change", DIVERGE)
def test_a_change_of_what_was_asked_stops_the_run_for_a_person(change: str) -> None:
    stage, asked = replayed(build(edited(change)), long_log())
    (held,) = held_by(asked)
    assert held.code == "code.diverged"
    assert held.location
    assert stage.machine.state.undo
    assert not any(isinstance(event, e.TaskScheduled | e.UndoScheduled) for batch in asked for event in batch)


@pytest.mark.parametrize("change", QUIET)
def test_something_no_longer_reached_is_not_reported_before_the_end(
    change: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "weft"):
        stage, asked = replayed(build(edited(change)), long_log())
    assert not held_by(asked)
    assert caplog.messages == []
    assert stage.machine.state.status == "running"


@pytest.mark.parametrize("change", ADDED)
def test_new_work_before_recorded_steps_stops_the_run_for_a_person(change: str) -> None:
    _, asked = replayed(build(edited(change)), long_log())
    (held,) = held_by(asked)
    assert "no longer reaches" in held.message
    assert not any(isinstance(event, e.TaskScheduled) for batch in asked for event in batch)
