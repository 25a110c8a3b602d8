"""One rule of goal runs at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests.goal.documents import catalogue_of, steps_of
from tests.goal.table import Table
from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.events import UndoPlan
from weft.core.goal.definitions import AskWay, Give, Need, Script, StepDef, StepWay, WorkflowWay
from weft.core.goal.machine import GoalMachine
from weft.core.goal.plan import Plan, encode_plan, make_plan
from weft.core.goal.state import GoalState, item_token
from weft.core.ids import EntryId
from weft.errors import BadPlan, BadValue, Failure, NotAllowed, NotFound, WeftError


def plan_of(document: Mapping[str, Any], goals: list[str], given: Mapping[str, Any], *more: StepDef) -> Plan:
    return make_plan(catalogue_of([*steps_of(document), *more]), goals, given)


def start(
    document: Mapping[str, Any], goals: list[str], given: Mapping[str, Any] | None = None, *more: StepDef
) -> Table:
    return Table(plan_of(document, goals, given or {}, *more), given or {})


def answer(table: Table, step: str, index: int = 0, **kwargs: Any) -> Table:
    token = item_token(table.state.uid, step, index)
    table.tell(c.AnswerWork(step=step, index=index, token=token, **kwargs))
    return table


def fresh(table: Table, uid: str = "u") -> Table:
    """The table with a run that has not begun."""
    table.machine = GoalMachine(table.program, GoalState(uid=uid))
    table.log, table.tasks, table.letters, table.ended = [], {}, [], False
    return table


def envelope(table: Table) -> Any:
    return msgspec.json.decode(table.state.output)


def kinds(table: Table) -> list[type]:
    return [type(event) for event in table.events]


# --- starting and ending -----------------------------------------------------------------------------------------


def test_a_plan_with_nothing_to_do_completes_in_its_first_append() -> None:
    table = start({"g": {"gives": {"x": "number"}}}, ["g"], {"x": 7})
    assert kinds(table) == [e.RunStarted, e.GoalPlanned, e.RunCompleted]
    assert table.result() == {"x": 7}


def test_a_given_value_of_the_wrong_type_is_refused_and_no_run_exists() -> None:
    plan = plan_of({"g": {"needs": {"n": "number"}}}, ["g"], {"n": 1})
    with pytest.raises(BadValue, match="n does not fit: a string is not a number"):
        Table(plan, {"n": "one"})


def test_a_plan_made_from_other_names_is_refused() -> None:
    plan = plan_of({"g": {"needs": {"n": "number"}}}, ["g"], {"n": 1})
    with pytest.raises(BadPlan, match="made with n given"):
        Table(plan, {})


def test_a_goal_run_does_not_start_without_a_plan() -> None:
    table = start({"g": {"gives": {"x": "number"}}}, ["g"], {"x": 7})
    with pytest.raises(BadPlan, match="without a plan"):
        fresh(table).tell(c.StartRun(run_id="r", workflow="w", input=Raw(b"{}")))


def test_what_a_goal_run_cannot_do_is_refused_with_a_sentence() -> None:
    table = start({"g": {}}, ["g"])
    with pytest.raises(NotAllowed, match="cannot be told to retry run"):
        table.tell(c.RetryRun())


def test_a_completed_run_tells_its_result_all_facts_and_what_its_goals_returned() -> None:
    document = {
        "a": {"gives": {"x": "any"}},
        "g": {"needs": {"x": "any"}},
        "h": {"needs": {"x": "any"}, "when": "x > 5"},
    }
    table = start(document, ["g", "h"], {"q": "given"})
    table.play({"a": {"output": {"x": 1}}, "g": {"output": "sent"}})
    assert envelope(table) == {
        "result": {},
        "facts": {"q": "given", "x": 1},
        "of": {"g": "sent"},
        "skipped": ["h"],
    }


def test_of_two_goals_with_one_output_the_earlier_in_the_list_is_the_result() -> None:
    document = {"a": {"gives": {"x": "any"}}, "b": {"gives": {"x": "any"}}}
    table = start(document, ["b", "a"])
    table.play({"a": {"output": {"x": "a"}}, "b": {"output": {"x": "b"}}}, order=[["work", "a", 0], ["work", "b", 0]])
    assert table.result() == {"x": "b"}
    assert table.facts() == {"x": "a"}


def test_the_failure_names_the_goal_the_root_and_what_was_dropped() -> None:
    document = {
        "a": {"gives": {"x": "any"}},
        "b": {"needs": {"x": "any"}, "gives": {"y": "any"}},
        "c": {"gives": {"z": "any"}},
        "g": {"needs": {"y": "any", "z": "any"}},
    }
    table = start(document, ["g"])
    table.play({"a": {"error": "boom"}}, order=[["work", "a", 0]])
    failure = table.state.failure
    assert failure is not None
    assert failure.attributes == {"goal": "g", "cause": "a", "dropped": ["c"], "failure": "Error"}


def test_a_run_that_takes_too_long_fails_and_drops_everything() -> None:
    plan = plan_of({"g": {}}, ["g"], {})
    table = Table(plan, {})
    fresh(table)
    table.tell(c.StartGoal(run_id="r", workflow="w", input=Raw(b"{}"), plan=Raw(encode_plan(plan)), timeout_ms=1_000))
    table.now += 999
    assert table.tell(c.FireTimer(EntryId(0))) == 0
    table.now += 1
    table.tell(c.FireTimer(EntryId(0)))
    assert table.state.status == "failed"
    assert table.error() == "r did not end in its time"


# --- values ------------------------------------------------------------------------------------------------------


def test_an_input_of_the_wrong_type_fails_its_step_alone() -> None:
    document = {
        "a": {"gives": {"x": "any"}},
        "b": {"needs": {"x": "number"}, "gives": {"y": "any"}},
        "g": {"needs": {"y": {"default": "none", "deadline": "wait"}}, "gives": {"z": "any"}},
    }
    table = start(document, ["g"])
    table.play({"a": {"output": {"x": "text"}}, "g": {"output": {"z": 1}}})
    assert table.state.steps["b"].why == "bad_input: x"
    assert table.state.status == "completed"


def test_more_than_ten_thousand_items_fail_the_step_and_nothing_else() -> None:
    document = {
        "b": {"needs": {"u": {"each": True}, "v": {"each": True}}, "gives": {"y": "any"}},
        "g": {"needs": {"y": {"optional": True, "deadline": "wait"}}, "gives": {"z": "any"}},
    }
    table = start(document, ["g"], {"u": list(range(101)), "v": list(range(100))})
    table.play({"g": {"output": {"z": 1}}})
    assert table.state.steps["b"].why == "too_many_items"
    assert table.state.status == "completed"
    exactly = start(document, ["g"], {"u": list(range(100)), "v": list(range(100))})
    assert exactly.state.steps["b"].items == 10_000


def test_a_json_schema_is_checked_too() -> None:
    schema = {"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]}
    table = start({"g": {"gives": {"price": {"type": schema}}}}, ["g"])
    table.play({"g": {"output": {"price": {"cents": "many"}}}})
    assert table.error() == "goal step 'g' cannot complete: bad_output: price"


def test_an_output_can_be_the_whole_result_or_made_of_it() -> None:
    step = StepDef(
        id="g",
        way=StepWay("g"),
        gives={"all": Give(whole=True), "n": Give(type="integer", mapping=Script("value.list.size()"))},
    )
    table = start({}, ["g"], {}, step)
    table.play({"g": {"output": {"list": [1, 2]}}})
    assert table.result() == {"all": {"list": [1, 2]}, "n": 2}


def test_inner_names_are_for_the_work_and_fact_names_for_the_rest() -> None:
    step = StepDef(
        id="g",
        way=StepWay("g"),
        needs={"users": Need(each=True, name="user"), "greeting": Need(role="const", value="hi", name="text")},
        gives={"message_id": Give(key="id")},
        when=Script("user != 'b' && text == 'hi'"),
    )
    table = start({}, ["g"], {"users": ["a", "b"]}, step)
    (effect,) = table.tasks.values()
    assert msgspec.json.decode(effect.input) == {"text": "hi", "user": "a"}
    table.play({"g": {"output": {"id": "m"}}})
    assert table.result() == {"message_id": [{"users": "a", "message_id": "m"}]}
    assert table.names.count("work_skipped") == 1


def test_values_too_large_for_the_log_are_brought_when_they_are_looked_at() -> None:
    document = {
        "a": {"needs": {"q": {"match": "value.startsWith('x')"}}, "gives": {"x": "string"}},
        "g": {"needs": {"x": "string", "q": "string"}, "gives": {"y": "string"}},
    }
    big = "x" * 100
    plan = plan_of(document, ["g"], {"q": big})
    table = start({"n": {}}, ["n"])

    def keep(raw: bytes) -> Raw:
        if len(raw) < 50:
            return Raw(values.seal(raw))
        digest = hashlib.sha256(raw).hexdigest()
        table.store[digest] = raw
        return Raw(values.ref_for(digest, len(raw)))

    original = msgspec.json.encode({"q": big})
    fresh(table)
    table.keep = keep
    table.tell(c.StartGoal(run_id="r", workflow="w", input=keep(original), plan=Raw(encode_plan(plan))))
    table.report(*_only(table), {"output": {"x": big}})
    assert values.is_ref(bytes(table.state.facts["x"][0].value))
    (effect,) = _only(table)
    assert msgspec.json.decode(table.store[values.parse_ref(bytes(effect.input)).digest]) == {"q": big, "x": big}
    at = (effect.task, effect.attempt, effect.delivery)
    table.tell(c.ReportTaskSucceeded(*at, keep(msgspec.json.encode({"y": big}))))
    assert table.state.status == "completed"
    output = table.store[values.parse_ref(bytes(table.state.output)).digest]
    assert msgspec.json.decode(output)["result"] == {"y": big}


def _only(table: Table) -> list[Any]:
    (effect,) = table.tasks.values()
    return [effect]


def test_a_large_result_of_the_wrong_type_is_found_out_before_it_is_used() -> None:
    table = start({"g": {"gives": {"y": "number"}}}, ["g"])
    raw = msgspec.json.encode({"y": "text" * 20})
    digest = hashlib.sha256(raw).hexdigest()
    table.store = {digest: raw}
    (effect,) = table.tasks.values()
    table.tell(c.ReportTaskSucceeded(effect.task, 1, 1, Raw(values.ref_for(digest, len(raw)))))
    assert table.error() == "goal step 'g' cannot complete: bad_output: y"


# --- scripts that only the shell can run -------------------------------------------------------------------------

LUA = {"lang": "lua", "source": "return x > 5"}


def test_a_predicate_in_lua_is_asked_of_the_shell_once() -> None:
    document = {"a": {"gives": {"x": "any"}}, "g": {"needs": {"x": "any"}, "gives": {"y": "any"}, "when": LUA}}
    table = start(document, ["g"])
    table.lua = lambda _, bound: bound["x"] > 5
    table.play({"a": {"output": {"x": 7}}, "g": {"output": {"y": 1}}})
    assert table.result() == {"y": 1}
    assert [(q.language, q.source, q.values) for q in table.program.reader.asked] == [
        ("lua", "return x > 5", b'{"x":7}')
    ]


def test_a_predicate_in_lua_that_says_no_skips_and_one_that_raises_fails() -> None:
    document = {"a": {"gives": {"x": "any"}}, "g": {"needs": {"x": "any"}, "gives": {"y": "any"}, "when": LUA}}
    table = start(document, ["g"])
    table.lua = lambda *_: False
    table.play({"a": {"output": {"x": 7}}})
    assert table.state.steps["g"].why == "predicate returned false"

    def raises(*_: Any) -> bool:
        raise WeftError("attempt to compare nil")

    table = start(document, ["g"])
    table.lua = raises
    table.play({"a": {"output": {"x": 7}}})
    assert table.error() == ("goal step 'g' cannot complete: predicate could not be evaluated: attempt to compare nil")


def test_matches_in_lua_are_recorded_so_that_a_replay_asks_nobody() -> None:
    match = {"lang": "lua", "source": "return value == 'go'"}
    document = {
        "a": {"gives": {"x": "any"}},
        "g": {"needs": {"x": {"match": match}, "q": {"match": match}}, "gives": {"y": "any"}},
    }
    table = start(document, ["g"], {"q": "go"})
    table.play({"a": {"output": {"x": "going"}}, "g": {"output": {"y": 1}}})
    assert [asked.values for asked in table.program.reader.asked] == [b'{"value":"go"}', b'{"value":"going"}']
    table.program.reader.answers.clear()
    assert table.replayed().snapshot() == table.machine.snapshot()


def test_a_match_that_cannot_be_evaluated_fails_its_step_and_says_so() -> None:
    document = {
        "a": {"gives": {"x": "any"}},
        "g": {"needs": {"x": {"match": "value.size() > 1"}}, "gives": {"y": "any"}},
    }
    table = start(document, ["g"])
    table.play({"a": {"output": {"x": 1}}})
    assert table.error() == "goal step 'g' cannot complete: match could not be evaluated: x"


# --- items and retries -------------------------------------------------------------------------------------------

FAN = {
    "g": {
        "needs": {"u": {"type": "array", "each": True}},
        "gives": {"r": "any"},
        "width": 2,
        "retry": {"attempts": 3, "backoff": "fixed", "delay": "1s"},
    }
}


def test_no_more_items_than_the_width_are_under_way() -> None:
    table = start(FAN, ["g"], {"u": list(range(7))})
    seen = 0
    while not table.state.over:
        assert len(table.tasks) == min(2, 7 - seen)
        table.run(table.open_commands()[0], {"g": {"output": {"r": 1}}})
        seen += 1
    assert seen == 7


def test_waiting_for_a_retry_holds_no_slot_and_a_retry_that_is_due_waits_for_one() -> None:
    table = start(FAN, ["g"], {"u": list(range(4))})
    busy = {"g": {"items": [[{"retry": "busy"}, {"output": {"r": 0}}], {"output": {"r": 1}}]}}
    table.run(["work", "g", 0], busy)
    assert sorted(table.place(n)[1] for n in table.tasks) == [1, 2]
    table.run(["retry", "g", 0], busy)
    assert sorted(table.place(n)[1] for n in table.tasks) == [1, 2], "both slots are taken"
    table.run(["work", "g", 1], busy)
    assert sorted(table.place(n)[1] for n in table.tasks) == [0, 2], "the lowest index goes first"
    table.play(busy)
    assert [entry["r"] for entry in table.result()["r"]] == [0, 1, 1, 1]


def test_every_attempt_of_an_item_has_the_same_key() -> None:
    table = start(FAN, ["g"], {"u": ["a"]})
    busy = {"g": [{"retry": "busy"}, {"output": {"r": 0}}]}
    first = next(iter(table.tasks.values()))
    table.run(["work", "g", 0], busy)
    table.run(["retry", "g", 0], busy)
    second = next(iter(table.tasks.values()))
    assert (first.key, first.attempt, second.key, second.attempt) == (second.key, 1, f"{table.state.uid}/g[0]", 2)


def test_a_far_side_that_wants_to_be_left_alone_is_left_alone() -> None:
    table = start(FAN, ["g"], {"u": ["a"]})
    (effect,) = table.tasks.values()
    table.report(effect, {"retry": "429", "attributes": {"retry_after_ms": 90_000}})
    assert table.timers == {effect.task: table.now + 90_000}


def test_a_lost_hand_out_is_handed_out_again_in_its_slot() -> None:
    table = start(FAN, ["g"], {"u": ["a"]})
    (effect,) = table.tasks.values()
    table.tell(c.ReportTaskLost(effect.task, 1, 1))
    (again,) = table.tasks.values()
    assert (again.task, again.delivery) == (effect.task, 2)
    assert table.report(effect, {"output": {"r": 1}}) == 0


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
    table.report(*_only(table), {"never": True})
    assert table.tasks == {}
    answer(table, "g", output=Raw(b'{"x":5}'))
    assert table.result() == {"x": 5}


def test_an_answer_may_come_before_the_acceptance() -> None:
    table = start({**LATER, "h": {"needs": {"x": "any"}}}, ["h"])
    (effect,) = table.tasks.values()
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
    (effect,) = table.tasks.values()
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


def test_a_second_answer_decides_nothing_and_a_wrong_token_is_refused() -> None:
    table = start({**LATER, "h": {"needs": {"x": "any"}}}, ["h"])
    answer(table, "g", output=Raw(b'{"x":5}'))
    before = len(table.log)
    answer(table, "g", output=Raw(b'{"x":6}'))
    assert len(table.log) == before
    with pytest.raises(NotFound):
        table.tell(c.AnswerWork(step="g", index=0, token="forged"))
    with pytest.raises(NotFound):
        answer(table, "nobody")


def test_an_answer_from_an_earlier_run_says_where_it_is_from() -> None:
    table = start({"g": {"gives": {"x": "any"}}}, ["g"])
    (effect,) = table.tasks.values()
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
    (effect,) = table.tasks.values()
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


def test_an_unknown_outcome_is_undone_too() -> None:
    document = {"g": {"gives": {"x": "any"}, "undo": "undo_g", "effect": "irreversible"}}
    table = start(document, ["g"])
    (effect,) = table.tasks.values()
    table.tell(c.ReportTaskLost(effect.task, 1, 1))
    assert [event.step for event in table.events if isinstance(event, e.UndoScheduled)] == ["undo_g"]


# --- children and people -----------------------------------------------------------------------------------------

FAMILY = {
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
    assert parent.state.status == "rolling_back"
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
    scheduled = next(event for event in table.events if isinstance(event, e.TaskScheduled))
    assert scheduled.undo == UndoPlan("refund", ["result"])
    assert scheduled.token == item_token(table.state.uid, "g", 0)
