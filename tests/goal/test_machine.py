"""One rule of goal runs at a time."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests.goal.plays import envelope, fresh, kinds, only, plan_of, start
from tests.goal.table import Table
from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.goal.definitions import Give, Need, Script, StepDef, StepWay
from weft.core.goal.plan import encode_plan
from weft.core.ids import EntryId
from weft.errors import BadPlan, BadValue, Refused, WeftError

# --- starting and ending -----------------------------------------------------------------------------------------


def test_a_plan_with_nothing_to_do_completes_in_its_first_append() -> None:
    table = start({"g": {"gives": {"x": "number"}}}, ["g"], {"x": 7})
    assert kinds(table) == [e.RunStarted, e.GoalPlanned, e.RunCompleted]
    assert table.result() == {"x": 7}


def test_a_given_value_of_the_wrong_type_is_refused_and_no_run_exists() -> None:
    plan = plan_of({"g": {"needs": {"n": "number"}}}, ["g"], {"n": 1})
    with pytest.raises(BadValue, match="n has the wrong type: a string is not a number"):
        Table(plan, {"n": "one"})


def test_a_plan_made_from_other_names_is_refused() -> None:
    plan = plan_of({"g": {"needs": {"n": "number"}}}, ["g"], {"n": 1})
    with pytest.raises(BadPlan, match="the input does not have: n"):
        Table(plan, {})


def test_a_goal_run_does_not_start_without_a_plan() -> None:
    table = start({"g": {"gives": {"x": "number"}}}, ["g"], {"x": 7})
    with pytest.raises(BadPlan, match="without a plan"):
        fresh(table).tell(c.StartRun(run_id="r", workflow="w", input=Raw(b"{}")))


def test_what_a_goal_run_cannot_do_is_refused_with_a_sentence() -> None:
    table = start({"g": {}}, ["g"])
    with pytest.raises(Refused, match="so it cannot be retried"):
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
    assert table.names.count("attribute_set") == 1, "nobody reads the second value, so it is not kept"


def test_all_values_come_given_first_and_then_by_provider_whoever_was_faster() -> None:
    document = {
        "a": {"gives": {"x": "any"}},
        "b": {"gives": {"x": "any"}},
        "g": {"needs": {"x": {"collect": "all"}}, "gives": {"y": "any"}},
        "h": {"needs": {"x": {"collect": "last"}}},
    }
    table = start(document, ["g", "h"], {"x": "given"})
    behaviour = {"a": {"output": {"x": "a"}}, "b": {"output": {"x": "b"}}}
    table.play(behaviour, order=[["work", "b", 0], ["work", "a", 0]])
    assert table.inputs()["g"] == {"x": ["given", "a", "b"]}
    assert table.inputs()["h"] == {"x": "a"}, "the last is the last in the log"


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
    assert table.error() == "r did not end before its deadline"


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
    effect = only(table)
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
        return Raw(values.blob_ref(digest, len(raw)))

    original = msgspec.json.encode({"q": big})
    fresh(table)
    table.keep = keep
    table.tell(c.StartGoal(run_id="r", workflow="w", input=keep(original), plan=Raw(encode_plan(plan))))
    table.tell(c.ReportTaskSucceeded(only(table).task, 1, 1, keep(msgspec.json.encode({"x": big}))))
    assert values.is_ref(bytes(table.state.facts["x"][0].value))
    effect = only(table)
    assert msgspec.json.decode(table.store[values.parse_ref(bytes(effect.input)).digest]) == {"q": big, "x": big}
    at = (effect.task, effect.attempt, effect.delivery)
    table.tell(c.ReportTaskSucceeded(*at, keep(msgspec.json.encode({"y": big}))))
    assert table.state.status == "completed"
    output = table.store[values.parse_ref(bytes(table.state.output)).digest]
    assert msgspec.json.decode(output)["result"] == {"y": big}


def test_a_large_result_of_the_wrong_type_is_found_out_before_it_is_used() -> None:
    table = start({"g": {"gives": {"y": "number"}}}, ["g"])
    raw = msgspec.json.encode({"y": "text" * 20})
    digest = hashlib.sha256(raw).hexdigest()
    table.store = {digest: raw}
    effect = only(table)
    table.tell(c.ReportTaskSucceeded(effect.task, 1, 1, Raw(values.blob_ref(digest, len(raw)))))
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
    effect = only(table)
    table.report(effect, {"retry": "429", "attributes": {"retry_after_ms": 90_000}})
    assert table.timers == {effect.task: table.now + 90_000}


def test_a_lost_hand_out_is_handed_out_again_in_its_slot() -> None:
    table = start(FAN, ["g"], {"u": ["a"]})
    effect = only(table)
    table.tell(c.ReportTaskLost(effect.task, 1, 1))
    (again,) = table.tasks.values()
    assert (again.task, again.delivery) == (effect.task, 2)
    # The first success counts, whichever hand-out brings it; a failure of the lost one does not.
    assert table.report(effect, {"error": "boom"}) == 0
    assert table.report(effect, {"output": {"r": 1}}) == 1
    assert table.report(again, {"output": {"r": 2}}) == 0


@pytest.mark.parametrize("collect", ["first", "last", "some"])
def test_an_optional_without_a_deadline_is_bound_when_its_step_starts(collect: str) -> None:
    """What nobody waits for may still come while the step waits for something else."""
    document = {
        "p": {"needs": {}, "gives": {"x": "any"}},
        "q": {"needs": {}, "gives": {"x": "any"}},
        "slow": {"needs": {}, "gives": {"w": "any"}},
        "other": {"needs": {"x": {"type": "any", "collect": "all"}}, "gives": {"o": "any"}},
        "g": {
            "needs": {"x": {"default": "d", "collect": collect}, "w": {"default": "n", "deadline": "5s"}},
            "gives": {"y": "any"},
        },
    }
    table = start(document, ["g", "other"])
    table.run(["work", "p", 0], {"p": {"output": {"x": 1}}})
    table.run(["work", "slow", 0], {"slow": {"output": {"w": 2}}})

    assert table.inputs()["g"] == {"x": [1] if collect == "some" else 1, "w": 2}


def test_nobody_is_started_for_an_optional_that_nobody_waits_for() -> None:
    document = {
        "late": {"needs": {"k": "any"}, "gives": {"x": "any"}},
        "key": {"needs": {}, "gives": {"k": "any"}},
        "slow": {"needs": {}, "gives": {"w": "any"}},
        "other": {"needs": {"k": "any"}, "gives": {"o": "any"}},
        "g": {
            "needs": {"x": {"default": "d"}, "w": {"default": "n", "deadline": "5s"}},
            "gives": {"y": "any"},
        },
    }
    table = start(document, ["g", "other"])
    table.run(["work", "key", 0], {"key": {"output": {"k": 1}}})

    assert table.state.steps["late"].status == "skipped"
    table.run(["work", "slow", 0], {"slow": {"output": {"w": 2}}})
    assert table.inputs()["g"] == {"x": "d", "w": 2}


# --- records ------------------------------------------------------------------------------------------------------


def test_a_chain_writes_four_records_per_step_and_a_value_once() -> None:
    table = start({"a": {"gives": {"x": "any"}}, "b": {"needs": {"x": "any"}, "gives": {"y": "any"}}}, ["b"])
    table.play({"a": {"output": {"x": "only-once"}}, "b": {"output": {"y": 1}}})

    assert kinds(table) == [
        e.RunStarted, e.GoalPlanned,
        e.StepStarted, e.TaskSucceeded, e.StepCompleted,
        e.StepStarted, e.TaskSucceeded, e.StepCompleted,
        e.RunCompleted,
    ]  # fmt: skip
    assert sum(e.encode(event).count(b"only-once") for event in table.events[:-1]) == 1
    assert table.names == [
        "flow_started",
        "step_started", "work_started", "work_succeeded", "attribute_set", "step_completed",
        "step_started", "work_started", "work_succeeded", "attribute_set", "step_completed",
        "flow_completed",
    ]  # fmt: skip
