"""The planner against brute force, whatever the order of things."""

from __future__ import annotations

import random

import pytest

from tests import scale
from tests.goal.documents import catalogue_of, step_of, steps_of
from tests.goal.reference import naive_plan
from tests.goal.test_golden import plan_shown
from tests.goal.worlds import ALL, Traits, random_steps
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.definitions import Give, GoalWay, Need, StepDef, StepWay
from weft.core.goal.plan import check_complete, decode_plan, encode_plan
from weft.core.goal.planner import make_plan
from weft.errors import BadPlan, LimitExceeded, UnknownStep

pytestmark = scale.MARKS

CATALOGUES = scale.scaled(120, 1_500)


def test_it_agrees_with_brute_force_on_random_catalogues() -> None:
    missing = excluded = 0
    for seed in range(CATALOGUES):
        rng = random.Random(seed)
        steps = random_steps(rng, ALL, steps=rng.randint(2, 9), ranks=rng.randint(2, 5))
        goals = rng.sample([step.id for step in steps], rng.randint(1, 2))
        given = [fact for fact in ("f0a", "f0b", "f1a", "f2b") if rng.random() < 0.4]
        plan = make_plan(Catalogue(steps), goals, given)
        expected = naive_plan(steps, goals, given)
        assert {**plan_shown(plan), "missing": plan.missing} == expected, f"seed {seed}"
        missing += bool(plan.required)
        excluded += bool(plan.excluded)
    assert min(missing, excluded) > CATALOGUES / 10, "the catalogues are worth it"


def test_no_order_changes_a_plan() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        steps = random_steps(rng, ALL)
        goals = rng.sample([step.id for step in steps], 2)
        given = [fact for fact in ("f0a", "f0b", "f1a") if rng.random() < 0.5]
        plan = make_plan(Catalogue(steps), goals, given)
        rng.shuffle(steps)
        rng.shuffle(given)
        assert encode_plan(make_plan(Catalogue(steps), goals, given)) == encode_plan(plan)
        turned = make_plan(Catalogue(steps), goals[::-1], given)
        assert (turned.steps, turned.required, turned.missing) == (plan.steps, plan.required, plan.missing)


def test_giving_all_that_is_required_makes_a_plan_that_can_start() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        steps = random_steps(rng, Traits("competition", "each", "optionals"))
        goals = [rng.choice(steps).id]
        plan = make_plan(Catalogue(steps), goals, [])
        full = make_plan(Catalogue(steps), goals, plan.required)
        assert full.required == []
        check_complete(full)


def test_a_step_that_does_not_lie_upstream_changes_nothing() -> None:
    steps = steps_of({"a": {"gives": {"x": "any"}}, "g": {"needs": {"x": "any"}, "gives": {"y": "any"}}})
    beside = steps_of({"far": {"needs": {"y": "any"}, "gives": {"z": "any"}}, "alone": {"gives": {"q": "any"}}})
    alone = make_plan(Catalogue(steps), ["g"], [])
    assert make_plan(Catalogue([*beside, *steps]), ["g"], []) == alone


def test_a_plan_comes_back_from_json_as_it_was() -> None:
    for seed in range(50):
        steps = random_steps(random.Random(seed), ALL)
        plan = make_plan(Catalogue(steps), ["s0", "s1"], ["f0a"])
        assert decode_plan(encode_plan(plan)) == plan


def test_what_is_missing_is_named_with_who_needs_it() -> None:
    steps = steps_of({"a": {"needs": {"k": "any"}, "gives": {"x": "any"}}, "g": {"needs": {"x": "any", "k": "any"}}})
    plan = make_plan(catalogue_of(steps), ["g"], [])
    assert plan.missing == {"k": ["a", "g"]}
    with pytest.raises(BadPlan, match=r"k \(for a, g\)"):
        check_complete(plan)


def test_an_unknown_goal_is_refused_with_the_name_that_was_probably_meant() -> None:
    with pytest.raises(UnknownStep, match=r'Did you mean "invoice"\?'):
        make_plan(Catalogue([StepDef(id="invoice", way=StepWay("i"))]), ["invoise"], [])


# --- child runs --------------------------------------------------------------------------------------------------


def _goal_step(step: str, goals: list[str], needs: dict[str, Need] | None = None, gives: str = "") -> StepDef:
    return StepDef(id=step, way=GoalWay(goals), needs=needs or {}, gives={gives: Give()} if gives else {})


def test_the_plan_of_a_child_is_frozen_inside() -> None:
    inner = step_of("inner", {"needs": {"k": "any"}, "gives": {"x": "any"}})
    outer = _goal_step("outer", ["inner"], {"k": Need()}, "x2")
    plan = make_plan(Catalogue([inner, outer]), ["outer"], ["k"])
    assert sorted(plan.steps) == ["outer"]
    assert sorted(plan.children["outer"].steps) == ["inner"]
    assert plan.children["outer"].given == ["k"]


def test_what_a_child_lacks_refuses_its_parent() -> None:
    inner = step_of("inner", {"needs": {"k": "any"}, "gives": {"x": "any"}})
    deep = _goal_step("deep", ["outer"])
    outer = _goal_step("outer", ["inner"])
    plan = make_plan(Catalogue([inner, outer, deep]), ["deep"], ["k"])
    assert plan.required == ["deep/outer/k"]
    with pytest.raises(BadPlan, match="deep/outer/k"):
        check_complete(plan)


def test_a_blocked_goal_of_a_child_refuses_its_parent_too() -> None:
    inner = step_of("inner", {"needs": {"k": {"collect": "none"}}})
    outer = _goal_step("outer", ["inner"], {"k": Need()})
    with pytest.raises(BadPlan, match="outer/inner"):
        check_complete(make_plan(Catalogue([inner, outer]), ["outer"], ["k"]))


def test_goals_of_a_child_must_exist_when_it_is_planned() -> None:
    with pytest.raises(UnknownStep, match="nobody"):
        make_plan(Catalogue([_goal_step("outer", ["nobody"])]), ["outer"], [])


def test_children_nest_32_deep_and_no_deeper() -> None:
    steps = [StepDef(id="n0", way=StepWay("n0"))]
    steps += [_goal_step(f"n{n}", [f"n{n - 1}"]) for n in range(1, 40)]
    catalogue = Catalogue(steps)
    assert make_plan(catalogue, ["n32"], []).steps.keys() == {"n32"}
    with pytest.raises(LimitExceeded, match="32"):
        make_plan(catalogue, ["n33"], [])


def test_plans_that_would_explode_are_refused_quickly() -> None:
    steps = [StepDef(id="n0a", way=StepWay("n")), StepDef(id="n0b", way=StepWay("n"))]
    for n in range(1, 30):
        steps += [_goal_step(f"n{n}{x}", [f"n{n - 1}a", f"n{n - 1}b"]) for x in "ab"]
    with pytest.raises(LimitExceeded, match="steps"):
        make_plan(Catalogue(steps), ["n29a"], [])
