"""A failed goal run that is tried again goes on where it failed, and does nothing twice that has a result."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from msgspec import Raw

import weft
from tests.goal.plays import start
from tests.goal.table import Table
from tests.goal.test_random_runs import counts, worlds
from tests.goal.worlds import ALL
from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.machine import GoalMachine
from weft.core.goal.need_counts import NeedCounts
from weft.core.ids import Millis, Seq
from weft.core.run.env import Env
from weft.errors import BadValue, NotFound, Refused, RunUndone
from weft.observe.history import History
from weft.ports.store import StoredEvent

CHAIN: dict[str, Any] = {
    "a": {"gives": {"x": "any"}},
    "b": {"needs": {"x": "any"}, "gives": {"y": "any"}},
    "g": {"needs": {"y": "any"}},
}
BROKEN = {"a": {"output": {"x": 1}}, "b": {"error": "boom"}}
MENDED = {"a": {"error": "performed twice"}, "b": {"output": {"y": 2}}}


def retried(table: Table) -> list[str]:
    """The steps that a retry opens again."""
    table.tell(c.RetryRun())
    event = next(event for event in reversed(table.events) if isinstance(event, e.RunRetried))
    return event.steps


def test_what_failed_is_opened_again_and_what_completed_stays() -> None:
    table = start(CHAIN, ["g"])
    table.play(BROKEN)
    assert table.statuses() == {"a": "completed", "b": "failed", "g": "failed"}
    assert retried(table) == ["b", "g"]
    assert table.statuses() == {"a": "completed", "b": "active", "g": "pending"}
    table.play(MENDED)
    assert (table.state.status, table.state.retries) == ("completed", 1)
    assert table.facts() == {"x": 1, "y": 2}


def test_a_retry_that_fails_again_can_be_retried_again() -> None:
    table = start(CHAIN, ["g"])
    table.play(BROKEN)
    retried(table)
    table.play(BROKEN)
    assert table.state.status == "failed"
    retried(table)
    table.play(MENDED)
    assert (table.state.status, table.state.retries) == ("completed", 2)


def test_of_a_fan_out_only_items_without_a_result_are_begun_anew() -> None:
    document = {"g": {"needs": {"items": {"type": "array", "each": True}}, "gives": {"y": "any"}, "width": 2}}
    table = start(document, ["g"], {"items": [0, 1, 2, 3]})
    for index, reply in ((0, {"output": {"y": "a"}}), (1, {"error": "boom"})):
        table.report(table.tasks[table.number("g", index)], reply)
    assert table.state.status == "failed"
    retried(table)
    assert {table.place(number)[1] for number in table.tasks} == {1, 2}
    table.play({"g": {"output": {"y": "b"}}})
    assert [entry["y"] for entry in table.facts()["y"]] == ["a", "b", "b", "b"]


def test_who_was_not_needed_because_of_the_failure_is_needed_again() -> None:
    document = {
        "a": {"gives": {"x": "any"}},
        "b": {"gives": {"y": "any"}},
        "g": {"needs": {"x": "any", "y": "any"}},
    }
    table = start(document, ["g"])
    table.report(table.tasks[table.number("a", 0)], {"error": "boom"})
    assert table.statuses()["b"] == "skipped"
    assert retried(table) == ["a", "b", "g"]
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 1}}})
    assert table.state.status == "completed"


def test_the_loser_of_a_competition_stays_out() -> None:
    document = {
        "a": {"gives": {"x": "any"}},
        "b": {"gives": {"x": "any"}},
        "g": {"needs": {"x": "any"}},
    }
    table = start(document, ["g"])
    table.report(table.tasks[table.number("a", 0)], {"output": {"x": 1}})
    table.report(table.tasks[table.number("g", 0)], {"error": "boom"})
    assert table.statuses() == {"a": "completed", "b": "skipped", "g": "failed"}
    assert retried(table) == ["b", "g"]
    assert table.statuses() == {"a": "completed", "b": "skipped", "g": "active"}
    assert [table.place(number)[0] for number in table.tasks] == ["g"]


def test_a_predicate_that_said_no_is_not_asked_again() -> None:
    document = {"g": {"gives": {"x": "any"}}, "h": {"needs": {"n": "number"}, "when": "n > 5"}}
    table = start(document, ["g", "h"], {"n": 1})
    table.play({"g": {"error": "boom"}})
    assert retried(table) == ["g"]


def test_a_gate_sees_what_was_found_while_its_step_was_out() -> None:
    document = {
        "a": {"gives": {"x": "any"}},
        "b": {"gives": {"y": "any"}},
        "g": {"needs": {"x": "any", "y": {"type": "any", "match": "value == 'go'"}}},
        "h": {"needs": {"y": "any"}},
    }
    table = start(document, ["g", "h"])
    table.report(table.tasks[table.number("b", 0)], {"output": {"y": "go"}})
    table.play({"a": {"error": "boom"}})
    retried(table)
    table.play({"a": {"output": {"x": 1}}})
    assert table.statuses() == dict.fromkeys("abgh", "completed")


def test_a_history_tells_of_a_retry_as_it_is_now() -> None:
    table = start(CHAIN, ["g"])
    table.play(BROKEN)
    assert told(table) == [("a", "done"), ("b", "failed"), ("g", "failed")]
    retried(table)
    assert told(table) == [("a", "done"), ("b", "open")]
    table.play(MENDED)
    assert told(table) == [("a", "done"), ("b", "done"), ("g", "done")]


def told(table: Table) -> list[tuple[str, str]]:
    history = History()
    for seq, (event, at) in enumerate(table.log, 1):
        history.add(StoredEvent(Seq(seq), Millis(at), e.encode(event)))
    return [(mark.location, mark.status) for mark in history.current()]


def test_it_is_refused_where_it_makes_no_sense() -> None:
    table = start(CHAIN, ["g"])
    with pytest.raises(Refused, match="cannot be retried"):
        table.tell(c.RetryRun())
    table.play(BROKEN)
    with pytest.raises(Refused, match="was not closed"):
        table.tell(c.RetryRun("a"))


def test_after_an_undo_it_is_refused() -> None:
    table = start({**CHAIN, "a": {"gives": {"x": "any"}, "undo": "unmake"}}, ["g"])
    table.play(BROKEN)
    assert table.state.undone
    with pytest.raises(RunUndone, match="was undone"):
        table.tell(c.RetryRun())


RACE: dict[str, Any] = {
    "fast": {"gives": {"x": "any"}},
    "slow": {"gives": {"x": "any"}, "undo": "refund"},
    "b": {"needs": {"x": "any"}, "gives": {"y": "any"}},
    "g": {"needs": {"y": "any"}},
}


def test_a_loser_that_was_undone_does_not_stand_in_the_way() -> None:
    table = start(RACE, ["g"])
    for command in (["work", "fast", 0], ["work", "slow", 0]):
        table.run(command, {"fast": {"output": {"x": 1}}, "slow": {"output": {"x": 2}}})
    assert [effect.step for effect in table.tasks.values() if effect.takes is not None] == ["refund"]
    table.play({"b": {"error": "boom"}, "refund": {"output": {}}})
    assert (table.state.status, table.state.undone) == ("failed", [])

    assert retried(table) == ["b", "g", "slow"]
    assert [effect.step for effect in table.tasks.values()] == ["b"]
    table.play({"b": {"output": {"y": 3}}})

    assert (table.state.status, table.facts()) == ("completed", {"x": 1, "y": 3})


def test_a_step_whose_items_were_undone_is_not_opened_again() -> None:
    document = {
        "b": {"needs": {"u": {"each": True}}, "gives": {"r": "any"}, "undo": "take_back"},
        "d": {"gives": {"w": "any"}},
        "g": {"needs": {"r": {"optional": True, "deadline": "wait"}, "w": "any"}},
    }
    table = start(document, ["g"], {"u": ["one", "two"]})
    items = {"b": {"items": [{"output": {"r": 1}}, {"error": "boom"}]}}
    for command in (["work", "b", 0], ["work", "b", 1]):
        table.run(command, items)
    undo = next(effect for effect in table.tasks.values() if effect.takes is not None)
    table.report(undo, {"output": {}})
    table.play({**items, "d": {"error": "boom"}})
    assert table.state.status == "failed"

    with pytest.raises(RunUndone, match="was undone"):
        table.tell(c.RetryRun())


def test_a_child_run_of_a_retry_has_an_id_of_its_own() -> None:
    table = start({"in": {"gives": {"z": "any"}}, "g": {"goal": ["in"], "gives": {"z": "any"}}}, ["g"])
    ids = []
    for _ in range(2):
        (letter,) = (letter for letter in table.letters if letter.create)
        ids.append(letter.command.run_id)  # type: ignore[union-attr]
        table.letters.clear()
        (child,) = table.state.children
        table.tell(c.ReportChildEnded(child, "cancelled"))  # type: ignore[arg-type]
        assert table.state.status == "failed"
        retried(table)
    assert len(set(ids)) == 2


def test_random_runs_that_failed_end_when_tried_again_and_do_nothing_twice() -> None:
    ends: Counter[str] = Counter()
    for seed, plan, given, behaviour in worlds(ALL, 400, first=130_000):
        table = Table(plan, given)
        table.play(behaviour, seed=seed)
        for round_ in range(3):
            if table.state.status != "failed" or table.state.undone:
                break
            done = {step: set(run.results) for step, run in table.state.steps.items()}
            over = {step for step, run in table.state.steps.items() if run.status == "completed"}
            before = len(table.log)
            table.tell(c.RetryRun())
            table.machine = GoalMachine.restore(table.program, table.machine.snapshot())
            assert table.replayed().snapshot() == table.machine.snapshot(), f"seed {seed}"
            if not table.state.over:
                flow = table.machine.flow
                assert flow is not None
                assert counts(NeedCounts(plan, table.state)) == counts(flow), f"seed {seed}"
            table.play({} if round_ else _patient(behaviour, seed), seed=seed + round_)
            ends[table.state.status] += 1
            _assert_nothing_twice(table, table.events[before:], over, done, seed)
    assert min(ends["completed"], ends["failed"]) > 20, ends


def _patient(behaviour: Any, seed: int) -> Any:
    """Half of what fails for good works now."""
    draw = random.Random(seed)
    return {step: reply for step, reply in behaviour.items() if "error" not in str(reply) or draw.random() < 0.5}


def _assert_nothing_twice(
    table: Table, since: list[e.AnyEvent], over: set[str], done: dict[str, set[int]], seed: int
) -> None:
    items = {(step, index) for step, indexes in done.items() for index in indexes}
    for event in since:
        if isinstance(event, e.StepStarted | e.StepFailedEvent | e.StepSkipped):
            assert event.step not in over, f"seed {seed}"
        if isinstance(event, e.TaskScheduled):
            assert (event.node, event.item) not in items, f"seed {seed}"


def test_a_user_retries_a_goal_run() -> None:
    app = weft.App("memory://")
    tries: list[int] = []

    @app.step(gives="part")
    async def make_part(n: int) -> int:
        tries.append(n)
        return n

    @app.step(gives="whole")
    async def join(part: int) -> int:
        if len(tries) < 2:
            tries.append(-1)
            raise weft.Critical("not yet")
        return part * 10

    async def story() -> Any:
        async with app:
            handle = await app.start(app.goal("whole_goal", join), {"n": 4})
            with pytest.raises(weft.RunFailed):
                await handle.result()
            await handle.retry()
            return await handle.result()

    facts = asyncio.run(story())
    assert facts["whole"] == 40
    assert tries == [4, -1]


PAY: dict[str, Any] = {
    "pay": {"gives": {"x": "any"}, "effect": "irreversible"},
    "g": {"needs": {"x": "any"}},
}


def test_an_irreversible_step_that_failed_waits_for_a_person() -> None:
    table = start(PAY, ["g"])
    table.play({"pay": {"error": "boom"}})
    retried(table)
    assert not table.tasks
    (number,) = table.state.asks
    assert table.machine.location(number) == "pay"
    table.tell(c.DecideAsk("pay", approved=True))
    assert [effect.key.partition("/")[2] for effect in table.tasks.values()] == ["pay"]
    table.play({"pay": {"output": {"x": 1}}})
    assert table.state.status == "completed"


def test_an_irreversible_step_that_is_rejected_fails() -> None:
    table = start(PAY, ["g"])
    table.play({"pay": {"error": "boom"}})
    retried(table)
    table.tell(c.DecideAsk("pay", approved=False, by="ann"))
    assert table.state.status == "failed"
    assert table.state.steps["pay"].why == "performing pay again was rejected by ann"
    assert table.replayed().snapshot() == table.machine.snapshot()


def test_an_approval_given_beforehand_is_used_once() -> None:
    table = start(PAY, ["g"])
    for approved in (["pay"], []):
        table.play({"pay": {"error": "boom"}})
        table.tell(c.RetryRun(approved=approved))
        assert bool(table.tasks) is bool(approved)
        assert table.state.approvals == []


def test_an_approval_of_a_step_that_is_not_there_is_refused() -> None:
    table = start(PAY, ["g"])
    table.play({"pay": {"error": "boom"}})
    with pytest.raises(Refused, match="the plan has no step pya"):
        table.tell(c.RetryRun(approved=["pay[0]", "pya"]))
    assert table.state.status == "failed"


def test_the_result_of_an_open_step_is_set() -> None:
    table = start(CHAIN, ["g"])
    with pytest.raises(BadValue, match="does not fit"):
        table.machine.decide(c.SetResult(place="a", output=Raw(b"7")), Env(now=1, check=lambda *_: None))
    table.tell(c.SetResult(place="a", output=Raw(b'{"x":7}'), by="ann"))
    table.play({"b": {"output": {"y": 2}}})
    assert table.state.status == "completed"
    assert table.facts() == {"x": 7, "y": 2}
    assert table.replayed().snapshot() == table.machine.snapshot()


def test_an_open_step_fails_with_the_error_that_is_set() -> None:
    table = start(CHAIN, ["g"])
    table.tell(c.SetResult(place="a", error="closed"))
    assert table.state.steps["a"].why == "closed"
    assert table.state.status == "failed"


def test_a_retry_from_a_step_needs_one_that_the_failure_closed() -> None:
    table = start(CHAIN, ["g"])
    table.play(BROKEN)
    env = Env(now=1, check=lambda *_: None)
    with pytest.raises(Refused, match="a was not closed by the failure") as caught:
        table.machine.decide(c.RetryRun("a"), env)
    assert "--before a" in caught.value.hint
    with pytest.raises(NotFound):
        table.machine.decide(c.RetryRun("nowhere"), env)
    with pytest.raises(NotFound) as unknown:
        table.machine.decide(c.RetryRun("n" * 5_000), env)
    assert "n" * 61 not in str(unknown.value), "a long name is cut"
    table.tell(c.RetryRun("b"))
    table.play(MENDED)
    assert table.state.status == "completed"
