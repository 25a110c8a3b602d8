"""The rules of patches, one by one: docs/internals/goal.md#9-patches."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests.goal.patching import Patching, alive, command_of, dry_run, reasons, request_of, shown, succeeded, undo_of
from tests.goal.plays import start
from tests.goal.table import Table
from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.patch.request import GoalRequest
from weft.core.values import blob_ref
from weft.errors import PatchRefused, Refused, RunFinished, RunUndone
from weft.runtime.patch_parts import PreparedPatch

CHAIN: dict[str, Any] = {
    "a": {"gives": {"x": "any"}},
    "b": {"needs": {"x": "any"}, "gives": {"y": "any"}},
    "g": {"needs": {"y": "any"}, "gives": {"z": "any"}},
}


def work(table: Table, step: str, reply: dict[str, Any], index: int = 0) -> None:
    assert table.run(["work", step, index], {step: reply})


def apply(table: Table, today: dict[str, Any] | None = None, **patch: Any) -> dict[str, list[str]]:
    """Patch the run; what that did."""
    return shown(Patching(table).apply(command_of(request_of(patch, today))))


def refused(table: Table, today: dict[str, Any] | None = None, **patch: Any) -> list[tuple[str, str]]:
    """Why a patch is refused, and what each reason names."""
    with pytest.raises(PatchRefused) as caught:
        Patching(table).apply(command_of(request_of(patch, today)))
    return reasons(caught.value.plan)


NOTHING: dict[str, list[str]] = {"gone": [], "added": [], "reopened": [], "dropped": [], "starts": []}


# --- when a run can be patched -----------------------------------------------------------------------------------


def test_a_patch_that_says_nothing_is_refused() -> None:
    assert refused(start(CHAIN, ["g"])) == [("says_nothing", "")]
    assert refused(start(CHAIN, ["g"]), ends=True) == [("says_nothing", "")]


def test_all_reasons_are_given_at_once() -> None:
    table = start({**CHAIN, "a": {"needs": {"k": "any"}, "gives": {"x": "any"}}}, ["g"], {"k": 1})
    steps = {"a": {"gives": {"x": "any"}}, "n": {"needs": {"lost": "any"}, "gives": {"q": "any"}}}
    goals = {"add": ["nobody", "n"], "remove": ["other"]}
    found = refused(table, given={"k": 2}, goals=goals, steps=steps)
    assert sorted(found) == [
        ("fact_known", "k"),
        ("missing", "lost"),
        ("step_begun", "a"),
        ("unknown_goal", "nobody"),
        ("unknown_goal", "other"),
    ]


def test_a_run_that_is_over_or_only_drains_is_finished() -> None:
    table = start({"a": {"gives": {"x": "any"}}}, ["a"])
    work(table, "a", {"output": {"x": 1}})
    with pytest.raises(RunFinished):
        table.tell(command_of(GoalRequest(replan=True)))
    race = {
        "a": {"gives": {"x": "any"}},
        "b": {"gives": {"x": "any"}, "effect": "irreversible"},
        "g": {"needs": {"x": "any"}},
    }
    table = start(race, ["g"])
    work(table, "a", {"output": {"x": 1}})
    work(table, "g", {"output": {}})
    assert table.state.status == "running"
    assert table.tasks, "b drains"
    with pytest.raises(RunFinished, match="end is decided"):
        table.tell(command_of(GoalRequest(replan=True)))


def test_a_failed_run_whose_work_was_undone_cannot_be_patched() -> None:
    table = start({**CHAIN, "a": {"gives": {"x": "any"}, "undo": "unmake"}}, ["g"])
    work(table, "a", {"output": {"x": 1}})
    table.play({"b": {"error": "boom"}})
    with pytest.raises(RunUndone):
        table.tell(command_of(GoalRequest(replan=True)))


def test_a_run_that_never_began_cannot_be_patched() -> None:
    table = start(CHAIN, ["g"])
    table.state.begun = False
    with pytest.raises(Refused, match="has not begun"):
        table.machine.decide(command_of(GoalRequest(replan=True)), table.env())


@pytest.mark.parametrize("stop", [c.PauseRun(), c.HoldRun("code.diverged", "why")])
def test_a_stopped_run_is_patched_and_acts_when_it_is_resumed(stop: c.AnyCommand) -> None:
    table = start(CHAIN, ["g"])
    table.tell(stop)
    table.tasks.clear()
    plan = dry_run(table, command_of(request_of({"given": {"x": 5}})))
    assert shown(plan) == {**NOTHING, "dropped": ["a"], "starts": ["b"]}
    table.take(table.machine.decide(command_of(request_of({"given": {"x": 5}})), table.env()))
    assert alive(table) == {"a": "active", "b": "pending", "g": "pending"}
    table.tell(c.ResumeRun())
    assert alive(table) == {"b": "active", "g": "pending"}


def test_only_the_expected_plan_is_applied() -> None:
    table = start({**CHAIN, "a": {"gives": {"x": "any"}, "retry": {"attempts": 3}}}, ["g"])
    command = command_of(request_of({"given": {"w": 5}, "goals": {"add": ["b"]}}))
    expecting = msgspec.structs.replace(command, expect=dry_run(table, command).digest)
    work(table, "a", {"retry": "busy"})
    assert dry_run(table, command).digest == expecting.expect, "the same patch would do the same"
    table.run(["retry", "a", 0], {})
    work(table, "a", {"output": {"x": 1}})
    work(table, "b", {"error": "boom"})
    before = table.machine.snapshot()
    with pytest.raises(PatchRefused, match="not the expected one") as caught:
        table.tell(expecting)
    assert caught.value.code == "patch.moved_on"
    assert caught.value.plan.digest != expecting.expect
    assert table.machine.snapshot() == before


# --- given -------------------------------------------------------------------------------------------------------


def test_a_given_fact_that_nothing_has_read_gets_the_new_value() -> None:
    table = start({**CHAIN, "g": {"needs": {"y": "any", "k": "any"}}}, ["g"], {"k": 1})
    apply(table, given={"k": 2})
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 1}}})
    assert table.inputs()["g"] == {"y": 1, "k": 2}


def test_a_fact_that_was_read_or_that_a_step_gave_stays() -> None:
    table = start({**CHAIN, "a": {"needs": {"k": "any"}, "gives": {"x": "any"}}}, ["g"], {"k": 1})
    assert refused(table, given={"k": 2}) == [("fact_known", "k")]
    assert apply(table, given={"k": 1}) == NOTHING
    work(table, "a", {"output": {"x": 1}})
    assert refused(table, given={"x": 2}) == [("fact_known", "x")]


def test_a_fact_given_after_its_reader_began_may_change_again() -> None:
    steps = {"a": {"needs": {"k": {"default": "d"}}, "gives": {"x": "any"}}, "g": {"needs": {"x": "any"}}}
    table = start(steps, ["g"])
    apply(table, given={"k": 1})
    apply(table, given={"k": 2})
    assert table.facts() == {"k": 2}
    assert table.inputs()["a"] == {"k": "d"}


def test_the_types_of_given_values_are_checked() -> None:
    table = start({**CHAIN, "g": {"needs": {"y": "any", "n": {"type": "number", "default": 1}}}}, ["g"])
    assert refused(table, given={"n": "two"}) == [("wrong_type", "n")]
    apply(table, given={"n": 2})
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 1}}})
    assert table.inputs()["g"] == {"y": 1, "n": 2}


def test_a_value_that_has_another_type_in_the_new_plan_is_checked_when_it_is_bound() -> None:
    table = start({**CHAIN, "g": {"needs": {"y": "any", "k": "any"}}}, ["g"], {"k": "text"})
    apply(table, steps={"g": {"needs": {"y": "any", "k": "number"}}})
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 1}}})
    assert table.error() == "goal step 'g' cannot complete: bad_input: k"


def test_a_large_given_value_is_kept_outside_the_log() -> None:
    table = start(CHAIN, ["g"])
    kept: dict[str, bytes] = {}

    def keep(raw: bytes) -> Raw:
        digest = hashlib.sha256(raw).hexdigest()
        kept[digest] = raw
        return Raw(blob_ref(digest, len(raw))) if len(raw) > 50 else Raw(raw)

    table.keep = keep
    table.store = kept
    Patching(table).apply(command_of(request_of({"given": {"x": "long " * 20}})))
    assert kept
    table.play({"b": {"output": {"y": 1}}})
    assert table.state.status == "completed"


def test_a_given_fact_ends_the_wait_for_it() -> None:
    late = {"type": "any", "default": "d", "deadline": "5s"}
    steps = {
        "p": {"gives": {"w": "any"}},
        "q": {"gives": {"v": "any"}},
        "g": {"needs": {"w": late, "v": {**late, "deadline": "wait"}}},
    }
    table = start(steps, ["g"])
    assert len(table.timers) == 1
    assert apply(table, given={"w": 1}) == {**NOTHING, "dropped": ["p"]}
    assert not table.timers
    table.play({"q": {"output": {"v": 2}}})
    assert table.inputs()["g"] == {"w": 1, "v": 2}


# --- goals -------------------------------------------------------------------------------------------------------


def test_one_goal_must_stay() -> None:
    table = start(CHAIN, ["g"])
    assert refused(table, goals={"remove": ["g"]}) == [("no_goals", "")]
    assert apply(table, goals={"remove": ["g"], "add": ["b"]}) == {**NOTHING, "gone": ["g"]}
    assert table.machine.plan is not None
    assert table.machine.plan.goals == ["b"]


def test_an_added_goal_that_has_completed_counts_with_its_outputs() -> None:
    table = start(CHAIN, ["g"])
    work(table, "a", {"output": {"x": 1}})
    apply(table, goals={"add": ["a"]})
    table.play({"b": {"output": {"y": 2}}, "g": {"output": {"z": 3}}})
    assert table.result() == {"x": 1, "z": 3}


def test_an_added_goal_that_failed_would_fail_the_run() -> None:
    steps = {
        "a": {"gives": {"x": "any"}},
        "o": {"gives": {"q": "any"}},
        "g": {"needs": {"x": "any", "q": {"default": 0, "deadline": "wait"}}},
    }
    table = start(steps, ["g"])
    work(table, "o", {"error": "boom"})
    assert refused(table, goals={"add": ["o"]}) == [("would_end", "o")]


def test_a_goal_skipped_by_its_predicate_is_an_answer() -> None:
    table = start({**CHAIN, "s": {"needs": {"n": "number"}, "when": "n > 5"}}, ["g", "s"], {"n": 1})
    apply(table, goals={"remove": ["s"]})
    assert apply(table, goals={"add": ["s"]}) == NOTHING
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 1}}})
    assert table.state.status == "completed"


def test_a_goal_can_be_satisfied_by_what_is_given() -> None:
    table = start({**CHAIN, "h": {"needs": {"y": "any"}, "gives": {"w": "any"}}}, ["g", "h"])
    assert apply(table, given={"w": 7}) == {**NOTHING, "gone": ["h"]}
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 2}}, "g": {"output": {"z": 3}}})
    assert table.result() == {"w": 7, "z": 3}


def test_a_blocked_goal_is_refused() -> None:
    table = start({**CHAIN, "g": {"needs": {"y": "any", "k": {"type": "any", "collect": "none"}}}}, ["g"])
    assert refused(table, given={"k": 1}) == [("blocked", "g")]


# --- steps -------------------------------------------------------------------------------------------------------


def test_a_pending_step_is_replaced_and_one_that_began_is_not() -> None:
    table = start(CHAIN, ["g"])
    assert refused(table, steps={"a": {"gives": {"x": "string"}}}) == [("step_begun", "a")]
    more = {"b": {"needs": {"x": "any", "w": "any"}, "gives": {"y": "any"}}, "c": {"gives": {"w": "any"}}}
    assert apply(table, steps=more) == {**NOTHING, "added": ["c"], "starts": ["c"]}
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 1}}, "c": {"output": {"w": 1}}})
    assert table.inputs()["b"] == {"x": 1, "w": 1}


def test_a_cycle_and_a_clash_of_types_are_refused() -> None:
    table = start(
        {**CHAIN, "a": {"gives": {"x": "string"}}, "b": {"needs": {"x": "string"}, "gives": {"y": "any"}}}, ["g"]
    )
    loop = {"b": {"needs": {"z": "any"}, "gives": {"y": "any"}}}
    assert refused(table, steps=loop) == [("cycle", "b")]
    assert refused(table, steps={"b": {"needs": {"x": "number"}, "gives": {"y": "any"}}}) == [("type_clash", "x")]


def test_what_nothing_can_give_is_missing_with_the_steps_that_would_have() -> None:
    steps = {
        "a": {"gives": {"x": "any"}},
        "o": {"gives": {"q": "any"}},
        "g": {"needs": {"x": "any", "q": {"default": 0, "deadline": "wait"}}},
    }
    table = start(steps, ["g"])
    work(table, "o", {"error": "boom"})
    with pytest.raises(PatchRefused, match="nothing can give q") as caught:
        Patching(table).apply(
            command_of(request_of({"steps": {"n": {"needs": {"q": "any"}}}, "goals": {"add": ["n"]}}))
        )
    assert "o is over" in caught.value.plan.refusals[0].message


def test_with_the_catalogue_of_now_a_goal_that_is_gone_is_unknown() -> None:
    table = start(CHAIN, ["g"])
    assert refused(table, CHAIN, catalogue="plan", goals={"add": ["q"]}) == [("unknown_goal", "q")]
    today = {"a": CHAIN["a"], "b": CHAIN["b"]}
    assert refused(table, today, catalogue="now") == [("unknown_goal", "g")]


def test_a_step_that_has_left_comes_back_as_a_new_one() -> None:
    late = {"type": "any", "default": "d", "deadline": "5s"}
    steps = {
        "a": {"gives": {"x": "any"}},
        "p": {"gives": {"w": "any"}},
        "h": {"needs": {"w": late}},
        "g": {"needs": {"x": "any"}},
    }
    table = start(steps, ["g", "h"])
    assert list(table.timers.values()) == [6_000]
    assert apply(table, goals={"remove": ["h"]}) == {**NOTHING, "gone": ["h"], "dropped": ["p"]}
    assert not table.timers
    table.now = 2_000
    apply(table, steps={"p2": {"gives": {"w": "any"}}}, goals={"add": ["h"]})
    assert list(table.timers.values()) == [7_000]


def test_the_child_plan_of_an_open_goal_step_is_made_anew() -> None:
    steps = {
        "in": {"gives": {"w": "any"}},
        "a": {"gives": {"x": "any"}},
        "g": {"goal": ["in"], "needs": {"x": "any"}, "gives": {"w": "any"}},
    }
    table = start(steps, ["g"])
    assert table.machine.plan is not None
    assert list(table.machine.plan.children["g"].steps) == ["in"]
    apply(table, replan=True)
    assert list(table.machine.plan.children["g"].steps) == ["in"]
    more = {"in": {"needs": {"v": "any"}, "gives": {"w": "any"}}, "pre": {"gives": {"v": "any"}}}
    apply(table, steps=more)
    assert list(table.machine.plan.children["g"].steps) == ["in", "pre"]
    work(table, "a", {"output": {"x": 1}})
    (letter,) = (letter for letter in table.letters if letter.create)
    assert b'"pre"' in bytes(letter.command.plan)  # type: ignore[union-attr]
    assert refused(table, steps={"g": {"goal": ["nobody"], "gives": {"w": "any"}}}) == [("step_begun", "g")]


def test_a_child_plan_that_cannot_be_made_is_refused() -> None:
    table = start(CHAIN, ["g"])
    assert refused(table, steps={"g": {"goal": ["nobody"], "needs": {"y": "any"}}}) == [("missing", "")]
    inner = {"in": {"needs": {"lost": "any"}, "gives": {"w": "any"}}, "g": {"goal": ["in"], "needs": {"y": "any"}}}
    assert refused(table, steps=inner) == [("missing", "g/lost")]


# --- consequences ------------------------------------------------------------------------------------------------


RACE: dict[str, Any] = {
    "p": {"gives": {"x": "any"}},
    "q": {"gives": {"x": "any", "w": "any"}},
    "m": {"gives": {"v": "any"}},
    "g": {"needs": {"x": "any", "w": "any", "v": "any"}, "gives": {"z": "any"}},
}


def raced() -> Table:
    """A run in which q gave a second value of x that nobody read."""
    table = start(RACE, ["g"])
    work(table, "p", {"output": {"x": 1}})
    work(table, "q", {"output": {"x": 2, "w": 0}})
    assert [len(values) for values in (table.state.facts["x"],)] == [1]
    return table


@pytest.mark.parametrize(
    ("need", "bound"),
    [
        ({"collect": "some"}, [1, 2]),
        ({"collect": "last"}, 2),
        ({"match": "value == 2"}, 2),
        ({"collect": "all", "match": "value > 0"}, [1, 2]),
    ],
)
def test_values_that_are_read_only_now_come_from_the_log(need: dict[str, Any], bound: Any) -> None:
    table = raced()
    apply(table, steps={"g": {"needs": {"x": {"type": "any", **need}, "w": "any", "v": "any"}}})
    table.play({"m": {"output": {"v": 9}}})
    assert table.inputs()["g"] == {"x": bound, "w": 0, "v": 9}


def test_a_match_in_another_language_is_evaluated_outside() -> None:
    table = raced()
    table.lua = lambda source, bindings: bindings["value"] == 2
    match = {"source": "is two", "lang": "lua"}
    apply(table, steps={"g": {"needs": {"x": {"type": "any", "match": match}, "w": "any", "v": "any"}}})
    table.play({"m": {"output": {"v": 9}}})
    assert table.inputs()["g"]["x"] == 2


def test_what_a_completed_step_gave_cuts_off_other_providers_only_if_it_matches() -> None:
    steps = {"a": {"gives": {"x": "any"}}, "m": {"gives": {"v": "any"}}, "g": {"needs": {"x": "any", "v": "any"}}}
    for wanted, added in ((1, []), (2, ["b"])):
        table = start(steps, ["g"])
        work(table, "a", {"output": {"x": 1}})
        gate = {"type": "any", "match": f"value == {wanted}"}
        new = {"g": {"needs": {"x": gate, "v": "any"}}, "b": {"gives": {"x": "any"}}}
        assert apply(table, steps=new) == {**NOTHING, "added": added, "starts": added}
        table.play({"b": {"output": {"x": 2}}, "m": {"output": {"v": 0}}})
        assert table.inputs()["g"] == {"x": wanted, "v": 0}


def test_a_patch_that_would_complete_the_run_needs_leave() -> None:
    table = start({**CHAIN, "h": {"gives": {"w": "any"}}}, ["h", "g"])
    work(table, "h", {"output": {"w": 1}})
    assert refused(table, goals={"remove": ["g"]}) == [("would_end", "")]
    assert apply(table, goals={"remove": ["g"]}, ends=True) == {**NOTHING, "gone": ["b", "g"], "dropped": ["a"]}
    assert (table.state.status, table.result()) == ("completed", {"w": 1})


def test_work_that_must_not_be_interrupted_drains_when_a_patch_drops_it() -> None:
    table = start({**CHAIN, "a": {"gives": {"x": "any"}, "effect": "irreversible"}}, ["g"])
    assert apply(table, given={"x": 5}) == {**NOTHING, "dropped": ["a"], "starts": ["b"]}
    assert sorted(effect.step for effect in table.tasks.values()) == ["a", "b"]
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 1}}, "g": {"output": {"z": 1}}})
    assert table.facts() == {"x": 5, "y": 1, "z": 1}


# --- failed runs -------------------------------------------------------------------------------------------------


def failed(steps: dict[str, Any] = CHAIN, given: dict[str, Any] | None = None) -> Table:
    table = start(steps, ["g"], given)
    work(table, "a", {"output": {"x": 1}})
    work(table, "b", {"error": "boom"})
    assert table.state.status == "failed"
    return table


def test_a_failed_step_is_replaced_and_begins_anew_after_a_retry() -> None:
    table = failed()
    before = dict(table.handed_out)
    new = {"b": {"step": "better", "needs": {"x": "any", "k": "any"}, "gives": {"y": "any"}}}
    assert refused(table, steps=new) == [("missing", "k")]
    assert apply(table, steps=new, given={"k": 3}) == NOTHING
    assert not table.tasks
    table.tell(c.RetryRun())
    (effect,) = table.tasks.values()
    assert effect.step == "better"
    assert effect.key not in {old.key for old in before.values()}
    table.play({"b": {"output": {"y": 1}}, "g": {"output": {"z": 1}}})
    assert (table.state.status, table.inputs()["b"]) == ("completed", {"x": 1, "k": 3})


def test_a_replaced_step_is_as_it_was_if_the_patch_is_undone_before_the_retry() -> None:
    each = {**CHAIN, "b": {"needs": {"x": {"type": "any", "each": True}}, "gives": {"y": "any"}}}
    table = start(each, ["g"])
    work(table, "a", {"output": {"x": [1, 2]}})
    work(table, "b", {"output": {"y": "one"}}, 0)
    work(table, "b", {"error": "boom"}, 1)
    before = table.machine.snapshot()
    apply(table, steps={"b": {"needs": {"x": "any"}, "gives": {"y": "any"}}})
    Patching(table).apply(undo_of(table))
    undone = msgspec.json.decode(table.machine.snapshot())
    assert undone["steps"] == msgspec.json.decode(before)["steps"]
    table.tell(c.RetryRun())
    table.play({"b": {"output": {"y": "two"}}, "g": {"output": {"z": 1}}})
    assert [entry["y"] for entry in table.facts()["y"]] == ["one", "two"]
    assert succeeded(table)["b[0]"] == 1


def test_a_replaced_step_keeps_none_of_its_items() -> None:
    each = {**CHAIN, "b": {"needs": {"x": {"type": "any", "each": True}}, "gives": {"y": "any"}}}
    table = start(each, ["g"])
    work(table, "a", {"output": {"x": [1, 2]}})
    work(table, "b", {"output": {"y": "one"}}, 0)
    work(table, "b", {"error": "boom"}, 1)
    apply(table, steps={"b": {"needs": {"x": "any"}, "gives": {"y": "any"}}})
    table.tell(c.RetryRun())
    table.play({"b": {"output": {"y": "whole"}}, "g": {"output": {"z": 1}}})
    assert table.facts()["y"] == "whole"


def test_a_replaced_step_that_is_not_needed_any_more_stays_until_the_retry() -> None:
    table = failed()
    before = msgspec.json.decode(table.machine.snapshot())["steps"]["b"]
    new = {"b": {"needs": {"x": "any"}, "gives": {"w": "any"}}}
    assert apply(table, steps=new, given={"y": 5}) == NOTHING
    Patching(table).apply(undo_of(table))
    assert msgspec.json.decode(table.machine.snapshot())["steps"]["b"] == before
    table.tell(c.RetryRun())
    assert table.statuses() == {"a": "completed", "b": "skipped", "g": "active"}


def test_a_failed_run_that_would_fail_again_at_once_is_refused() -> None:
    table = start(CHAIN, ["g"])
    work(table, "a", {"output": {}})
    assert table.error() == "goal step 'g' cannot complete: required input no longer available: y"
    assert refused(table, replan=True) == [("would_end", "a")]
    assert apply(table, given={"x": 4}) == NOTHING
    table.tell(c.RetryRun())
    table.play({"b": {"output": {"y": 1}}, "g": {"output": {"z": 1}}})
    assert table.state.status == "completed"


def test_a_failed_run_may_complete_when_it_is_retried() -> None:
    table = start({**CHAIN, "h": {"gives": {"w": "any"}}}, ["h", "g"])
    work(table, "h", {"output": {"w": 1}})
    work(table, "a", {"error": "boom"})
    assert table.state.status == "failed"
    apply(table, goals={"remove": ["g"]})
    table.tell(c.RetryRun())
    assert (table.state.status, table.result()) == ("completed", {"w": 1})


def test_a_gate_that_closed_is_judged_anew_after_a_retry() -> None:
    steps = {
        "k": {"gives": {"way": "any"}},
        "a": {"gives": {"x": "any"}},
        "h": {"needs": {"way": {"type": "any", "match": "value == 'on'"}}, "gives": {"u": "any"}},
        "g": {"needs": {"x": "any"}, "gives": {"z": "any"}},
    }
    table = start(steps, ["g", "h"])
    work(table, "k", {"output": {"way": "off"}})
    assert table.statuses()["h"] == "skipped"
    work(table, "a", {"error": "boom"})
    apply(table, steps={"h": {"needs": {"way": {"type": "any", "match": "value == 'off'"}}, "gives": {"u": "any"}}})
    table.tell(c.RetryRun())
    table.play({"a": {"output": {"x": 1}}, "h": {"output": {"u": 1}}, "g": {"output": {"z": 1}}})
    assert table.statuses() == {"a": "completed", "g": "completed", "h": "completed", "k": "completed"}


def test_a_fact_stays_read_after_the_step_that_read_it_was_replaced() -> None:
    table = failed({**CHAIN, "b": {"needs": {"x": "any", "k": "any"}, "gives": {"y": "any"}}}, {"k": 1})
    apply(table, steps={"b": {"needs": {"x": "any"}, "gives": {"y": "any"}}})
    assert refused(table, given={"k": 2}) == [("fact_known", "k")]
    table.tell(c.RetryRun())
    assert refused(table, given={"k": 2}) == [("fact_known", "k")]


# --- undo --------------------------------------------------------------------------------------------------------


def test_an_undo_restores_what_a_patch_has_changed_and_a_redo_takes_it_back() -> None:
    table = start(CHAIN, ["g"])
    before = {**msgspec.json.decode(table.machine.snapshot())}
    apply(
        table,
        steps={
            "b": {"needs": {"x": "any", "w": "any"}, "gives": {"y": "any"}},
            "c": {"needs": {"x": "any"}, "gives": {"w": "any"}},
        },
    )
    patched = msgspec.json.decode(table.machine.snapshot())
    assert shown(Patching(table).apply(undo_of(table))) == {**NOTHING, "gone": ["c"]}
    undone = msgspec.json.decode(table.machine.snapshot())
    assert {name: undone[name] for name in ("plan", "steps", "tasks")} == {
        name: before[name] for name in ("plan", "steps", "tasks")
    }
    assert shown(Patching(table).apply(undo_of(table, redo=True))) == {**NOTHING, "added": ["c"]}
    redone = msgspec.json.decode(table.machine.snapshot())
    assert (redone["plan"], redone["steps"]) == (patched["plan"], patched["steps"])


def test_an_undo_that_would_bring_back_a_dropped_goal_is_refused() -> None:
    table = start({**CHAIN, "h": {"gives": {"w": "any"}}}, ["g", "h"])
    apply(table, goals={"remove": ["h"]})
    with pytest.raises(PatchRefused) as caught:
        Patching(table).apply(undo_of(table))
    assert reasons(caught.value.plan) == [("goal_over", "h")]


def test_facts_stay_when_a_patch_is_undone() -> None:
    table = start(CHAIN, ["g"])
    apply(table, given={"x": 5})
    Patching(table).apply(undo_of(table))
    assert table.facts() == {"x": 5}
    assert alive(table) == {"b": "active", "g": "pending"}


def test_the_event_has_who_and_why() -> None:
    table = start(CHAIN, ["g"])
    table.tell(command_of(GoalRequest(replan=True), by="ann", reason="to see"))
    patched = next(event for event in table.events if isinstance(event, e.RunPatched))
    assert (patched.rev, patched.by, patched.reason) == (1, "ann", "to see")
    assert patched.digest


def test_a_patch_without_preparation_can_be_sent_as_mail() -> None:
    undo = c.PatchRun(patch=Raw(b"{}"), prepared=PreparedPatch(base="1", version="1").prepared, undoes=1)
    assert c.decode(c.encode(undo)) == undo
