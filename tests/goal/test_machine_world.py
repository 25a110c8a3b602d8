"""Goal runs and the world: answers from outside, work that is dropped, undone, or done by other runs and people."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from tests.goal.plays import answer, fresh, only, start
from tests.goal.table import Table
from weft.core import commands as c
from weft.core import events as e
from weft.core.events import UndoPlan
from weft.core.goal.definitions import AskWay, Give, Need, Script, StepDef, StepWay, WorkflowWay
from weft.core.ids import EntryId
from weft.errors import Failure

# --- asynchronous work -------------------------------------------------------------------------------------------

LATER = {
    "g": {
        "http": {"url": "http://x.example", "answer": "later"},
        "gives": {"x": "any"},
        "retry": {"attempts": 3, "backoff": "fixed", "delay": "1s"},
        "timeout": "10s",
    }
}


def test_asynchronous_work_is_answered_from_outside() -> None:
    table = start(LATER, ["g"])
    table.report(only(table), {"never": True})
    assert table.tasks == {}
    answer(table, "g", output=Raw(b'{"x":5}'))
    assert table.result() == {"x": 5}


def test_an_answer_may_come_before_the_acceptance() -> None:
    table = start({**LATER, "h": {"needs": {"x": "any"}}}, ["h"])
    effect = only(table)
    answer(table, "g", output=Raw(b'{"x":5}'))
    assert table.report(effect, {"never": True}) == 0
    assert table.facts() == {"x": 5}


def test_asynchronous_work_that_is_not_answered_is_tried_again_and_then_fails() -> None:
    table = start(LATER, ["g"])
    table.play({"g": {"never": True}})
    assert table.error() == "goal step 'g' cannot complete: timed_out"
    assert table.names.count("work_started") == 3


def test_the_time_for_an_answer_counts_from_the_hand_out() -> None:
    table = start(LATER, ["g"])
    effect = only(table)
    handed_out = table.now
    table.now += 4_000
    table.report(effect, {"never": True})
    assert table.timers == {effect.task: handed_out + 10_000}


def test_a_success_of_an_earlier_attempt_takes_the_retry_away() -> None:
    table = start(LATER, ["g"])
    table.run(["work", "g", 0], {"g": {"never": True}})
    table.run(["late", "g", 0], {})
    assert table.open_commands() == [("retry", "g", 0)]
    answer(table, "g", output=Raw(b'{"x":5}'), attempt=1)
    assert table.result() == {"x": 5}


def test_an_item_that_is_answered_while_it_waits_frees_no_slot_twice() -> None:
    step = {**LATER["g"], "needs": {"u": {"each": True}}}
    table = start({"g": step}, ["g"], {"u": ["a", "b", "c"]})
    table.run(["work", "g", 0], {"g": {"never": True}})
    table.run(["late", "g", 0], {})
    assert [table.place(n)[1] for n in table.tasks] == [1]
    answer(table, "g", 0, output=Raw(b'{"x":5}'))
    assert [table.place(n)[1] for n in table.tasks] == [1], "its slot was given to the next one already"


def test_a_failure_counts_only_for_the_latest_attempt() -> None:
    table = start(LATER, ["g"])
    behaviour = {"g": {"never": True}}
    for command in (["work", "g", 0], ["late", "g", 0], ["retry", "g", 0], ["work", "g", 0]):
        table.run(command, behaviour)
    failure = Failure(type="declined", message="no money")
    answer(table, "g", failure=failure, attempt=1)
    assert not table.state.over
    answer(table, "g", failure=failure, attempt=2)
    assert table.error() == "goal step 'g' cannot complete: no money"


def test_a_second_answer_and_one_for_an_unknown_task_decide_nothing() -> None:
    table = start({**LATER, "h": {"needs": {"x": "any"}}}, ["h"])
    answer(table, "g", output=Raw(b'{"x":5}'))
    before = len(table.log)
    answer(table, "g", output=Raw(b'{"x":6}'))
    table.tell(c.AnswerWork(task=EntryId(999)))
    assert len(table.log) == before


def test_an_answer_from_an_earlier_run_says_where_it_is_from() -> None:
    table = start({"g": {"gives": {"x": "any"}}}, ["g"])
    effect = only(table)
    table.tell(c.RecallWork(task=effect.task, attempt=1, delivery=1, output=Raw(b'{"x":5}'), run_id="earlier", at=77))
    assert table.result() == {"x": 5}
    recalled = next(event for event in table.events if isinstance(event, e.WorkRecalled))
    assert (recalled.run_id, recalled.at) == ("earlier", 77)


# --- dropping, draining, undoing ---------------------------------------------------------------------------------


def race(**loser: Any) -> dict[str, Any]:
    return {
        "fast": {"gives": {"x": "any"}},
        "slow": {"gives": {"x": "any"}, **loser},
        "g": {"needs": {"x": "any"}, "gives": {"y": "any"}},
    }


BOTH = {"fast": {"output": {"x": 1}}, "slow": {"output": {"x": 2}}, "g": {"output": {"y": 3}}}


def test_a_loser_is_told_to_stop() -> None:
    table = start(race(), ["g"])
    table.run(["work", "fast", 0], BOTH)
    assert [table.place(n)[0] for n in table.tasks] == ["g"]
    assert table.statuses()["slow"] == "skipped"


def test_a_loser_that_is_irreversible_drains_and_the_run_waits_for_it() -> None:
    table = start(race(effect="irreversible"), ["g"])
    table.run(["work", "fast", 0], BOTH)
    table.run(["work", "g", 0], BOTH)
    assert not table.state.over
    table.run(["work", "slow", 0], BOTH)
    assert (table.state.status, table.facts()) == ("completed", {"x": 1, "y": 3})


def test_a_loser_that_drained_is_undone() -> None:
    table = start(race(undo="refund"), ["g"])
    for command in (["work", "fast", 0], ["work", "g", 0], ["work", "slow", 0]):
        table.run(command, BOTH)
    effect = only(table)
    assert (effect.step, effect.takes) == ("refund", ["result"])
    assert msgspec.json.decode(effect.input)["result"] == {"x": 2}
    table.play(BOTH)
    assert table.state.status == "completed"


def test_a_step_that_fails_undoes_the_items_that_succeeded() -> None:
    document = {
        "b": {"needs": {"u": {"each": True}}, "gives": {"r": "any"}, "undo": "take_back"},
        "g": {"needs": {"r": {"optional": True, "deadline": "wait"}}, "gives": {"y": "any"}},
    }
    table = start(document, ["g"], {"u": ["one", "two", "three"]})
    table.play(
        {"b": {"items": [{"output": {"r": 1}}, {"output": {"r": 2}}, {"error": "boom"}]}, "g": {"output": {"y": 1}}}
    )
    undone = [event for event in table.events if isinstance(event, e.UndoScheduled)]
    assert [msgspec.json.decode(event.input)["result"]["r"] for event in undone] == [2, 1], "newest first"
    assert table.state.status == "completed"


def test_a_failed_run_undoes_its_completed_steps_newest_first() -> None:
    document = {
        "a": {"gives": {"x": "any"}, "undo": "undo_a"},
        "b": {"needs": {"x": "any"}, "gives": {"y": "any"}, "undo": "undo_b"},
        "g": {"needs": {"y": "any"}},
    }
    table = start(document, ["g"])
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 1}}, "g": {"error": "boom"}})
    assert [event.step for event in table.events if isinstance(event, e.UndoScheduled)] == ["undo_b", "undo_a"]
    assert table.state.status == "failed"


def test_a_cancelled_run_waits_for_what_must_not_be_interrupted_and_undoes_it() -> None:
    table = start({"g": {"gives": {"x": "any"}, "undo": "undo_g"}}, ["g"])
    table.run(["cancel"], {})
    assert not table.state.over
    table.play({"g": {"output": {"x": 1}}})
    assert table.state.status == "cancelled"
    assert [event.step for event in table.events if isinstance(event, e.UndoScheduled)] == ["undo_g"]


def test_a_cancel_undoes_what_was_done_while_the_run_was_paused_newest_first() -> None:
    document = {
        "a": {"gives": {"x": "any"}, "undo": "undo_a"},
        "b": {"gives": {"y": "any"}, "undo": "undo_b"},
        "g": {"needs": {"x": "any", "y": "any"}},
    }
    table = start(document, ["g"])
    work = {table.place(effect.task)[0]: effect for effect in table.tasks.values()}
    table.tell(c.PauseRun())
    table.report(work["b"], {"output": {"y": 1}})
    table.report(work["a"], {"output": {"x": 1}})
    table.run(["cancel"], {})
    table.play({})
    assert [event.step for event in table.events if isinstance(event, e.UndoScheduled)] == ["undo_a", "undo_b"]
    assert table.state.status == "cancelled"


def test_a_hand_out_that_was_lost_is_not_handed_out_again_when_nobody_needs_it_but_it_is_undone() -> None:
    table = start(race(undo="refund"), ["g"])
    slow = next(effect for effect in table.tasks.values() if table.place(effect.task)[0] == "slow")
    for delivery in (1, 2):
        table.tell(c.ReportTaskLost(slow.task, 1, delivery))
    assert table.state.tasks[slow.task].due > table.now
    table.run(["work", "fast", 0], BOTH)
    assert slow.task not in table.tasks
    assert [event.step for event in table.events if isinstance(event, e.UndoScheduled)] == ["refund"]


def test_an_unknown_outcome_is_undone_too() -> None:
    document = {"g": {"gives": {"x": "any"}, "undo": "undo_g", "effect": "irreversible"}}
    table = start(document, ["g"])
    effect = only(table)
    table.tell(c.ReportTaskLost(effect.task, 1, 1))
    assert [event.step for event in table.events if isinstance(event, e.UndoScheduled)] == ["undo_g"]


# --- children and people -----------------------------------------------------------------------------------------

FAMILY: dict[str, Any] = {
    "inner": {"needs": {"k": "number"}, "gives": {"x": "any"}},
    "outer": {"goal": ["inner"], "needs": {"k": "number"}, "gives": {"x": "any"}},
    "g": {"needs": {"x": "any"}, "gives": {"y": "any"}},
}


def family() -> Table:
    document = {**FAMILY, "outer": {**FAMILY["outer"], "gives": {"z": {"name": "x"}}}, "g": {"needs": {"z": "any"}}}
    return start(document, ["g"], {"k": 1})


def child_of(parent: Table) -> Table:
    letter = parent.letters[-1]
    assert letter.create
    assert isinstance(letter.command, c.StartGoal)
    child = fresh(start({"n": {}}, ["n"]), letter.to)
    child.tell(letter.command)
    return child


def test_a_goal_step_is_a_child_run_with_the_plan_that_was_made_with_its_parent() -> None:
    parent = family()
    child = child_of(parent)
    child.play({"inner": {"output": {"x": 42}}})
    assert child.state.status == "completed"
    parent.tell(child.letters[-1].command)
    assert parent.facts()["z"] == 42
    parent.play({"g": {"output": {}}})
    assert parent.state.status == "completed"


def test_what_a_child_fails_with_is_final() -> None:
    parent = family()
    child = child_of(parent)
    child.play({"inner": {"error": "boom"}})
    parent.tell(child.letters[-1].command)
    assert parent.state.steps["outer"].why == "goal step 'inner' cannot complete: boom"
    assert parent.state.status == "failed"


def test_a_child_that_cannot_start_is_a_child_that_failed() -> None:
    parent = family()
    letter = parent.letters[-1].command
    assert isinstance(letter, c.StartGoal)
    child = child_of(parent)
    fresh(child).tell(msgspec.structs.replace(letter, input=Raw(b'{"k":"text"}')))
    assert child.state.status == "failed"
    parent.tell(child.letters[-1].command)
    assert parent.state.status == "failed"


def test_a_child_that_nobody_waits_for_is_cancelled_and_a_failed_run_waits_for_its_end() -> None:
    parent = family()
    parent.tell(c.CancelRun("enough"))
    assert isinstance(parent.letters[-1].command, c.CancelRun)
    assert not parent.state.over
    parent.tell(c.ReportChildEnded(EntryId(next(iter(parent.state.children))), "cancelled"))
    assert parent.state.status == "cancelled"


def test_a_workflow_of_another_style_is_a_provider_like_any_other() -> None:
    step = StepDef(id="g", way=WorkflowWay("pick"), needs={"k": Need()}, gives={"x": Give(whole=True)})
    table = start({}, ["g"], {"k": 1}, step)
    letter = table.letters[-1].command
    assert isinstance(letter, c.StartRun)
    assert (letter.workflow, letter.style, letter.input and bytes(letter.input)) == ("pick", "code", b'{"k":1}')
    table.tell(c.ReportChildEnded(EntryId(next(iter(table.state.children))), "completed", Raw(b'"picked"')))
    assert table.result() == {"x": "picked"}


def test_people_are_providers_too() -> None:
    step = StepDef(
        id="approve",
        way=AskWay(title="Spend ${cents}?", form={"type": "object"}),
        needs={"cents": Need()},
        gives={"approved": Give(type="boolean"), "note": Give(mapping=Script("value.form.note"))},
    )
    table = start({"g": {"needs": {"approved": "boolean", "note": "any"}}}, ["g"], {"cents": 500}, step)
    opened = next(event for event in table.events if isinstance(event, e.AskOpened))
    assert (opened.title, bytes(opened.about)) == ("Spend 500?", b'{"cents":500}')
    table.tell(c.DecideAsk("approve", approved=True, by="ann", form=Raw(b'{"note":"fine"}')))
    assert table.facts() == {"cents": 500, "approved": True, "note": "fine"}


def test_a_question_that_nobody_answers_in_time_fails_its_step() -> None:
    policy = msgspec.structs.replace(StepDef(id="x", way=StepWay("x")).policy, timeout_ms=5_000)
    step = StepDef(id="g", way=AskWay(title="Well?"), policy=policy)
    table = start({}, ["g"], {}, step)
    table.now += 5_000
    table.tell(c.FireTimer(EntryId(next(iter(table.state.asks)))))
    assert table.error() == "goal step 'g' cannot complete: timed_out"


def test_an_undo_plan_travels_with_the_definition() -> None:
    step = StepDef(id="g", way=StepWay("charge"), gives={"x": Give()}, undo=UndoPlan("refund", ["result"]))
    table = start({}, ["g"], {}, step)
    scheduled = next(event for event in table.told if isinstance(event, e.TaskScheduled))
    assert scheduled.undo == UndoPlan("refund", ["result"])
    assert (scheduled.node, scheduled.item) == ("g", 0)
