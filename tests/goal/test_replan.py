"""Planning a running run again changes nothing that is pending or active: docs/internals/goal.md#9-patches."""

from __future__ import annotations

from typing import Any

import pytest

from tests import scale
from tests.goal.patching import Patching, alive, command_of, undo_of
from tests.goal.plays import start
from tests.goal.random_patches import PatchedWorld
from tests.goal.test_patches import CHAIN, NOTHING, apply, work
from weft.core.goal.patch.request import GoalRequest
from weft.errors import Refused, RunFinished

pytestmark = scale.MARKS

FIRST = 50_000
WORLDS = scale.scaled(30, 1_000, soak=20_000)
FOUND = (50_129, 50_225, 52_807, 53_609)
"""Worlds in which a step was taken up or left, or a goal was unknown or satisfied."""


def test_planning_again_changes_nothing_that_is_pending_or_active() -> None:
    planned = [planned_again(seed) for seed in (*FOUND, *range(FIRST, FIRST + WORLDS))]
    assert sum(planned) > WORLDS / 3


def planned_again(seed: int) -> bool:
    """Play a run for a while, and plan it again. Every second run is patched first. Returns False if it was over."""
    world = PatchedWorld(seed)
    table = world.table()
    world.move(table, 5)
    try:
        if seed % 2 and seed not in FOUND:
            Patching(table).apply(command_of(world.request(table)))
            world.move(table, 3)
    except Refused:
        return False
    if table.state.over or table.state.ended:
        return False
    before = alive(table)
    try:
        plan = Patching(table).apply(command_of(GoalRequest(replan=True)))
    except RunFinished:
        return False
    assert {entry.what for entry in plan.entries} <= {"leaves"}, f"seed {seed}: {plan}"
    assert alive(table) == before, f"seed {seed}"
    table.play(world.behaviour, seed=seed)
    return True


SATISFIED: dict[str, Any] = {**CHAIN, "s": {"gives": {"k": "any"}}}


@pytest.mark.parametrize("patch", [{"replan": True}, {"given": {"w": 1}}, {"catalogue": "now"}])
def test_a_goal_that_was_satisfied_at_the_start_stays_satisfied(patch: dict[str, Any]) -> None:
    table = start(SATISFIED, ["s", "g"], {"k": 5})
    assert apply(table, CHAIN, **patch) == NOTHING
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 2}}, "g": {"output": {"z": 3}}})
    assert table.result() == {"k": 5, "z": 3}


def test_a_satisfied_goal_that_was_removed_comes_back_with_an_undo() -> None:
    table = start(SATISFIED, ["s", "g"], {"k": 5})
    apply(table, goals={"remove": ["s"]})
    Patching(table).apply(undo_of(table))
    table.play({"a": {"output": {"x": 1}}, "b": {"output": {"y": 2}}, "g": {"output": {"z": 3}}})
    assert table.result() == {"k": 5, "z": 3}


def test_a_skipped_step_that_nothing_needs_is_not_taken_up() -> None:
    steps = {
        "r": {"gives": {"m": "any"}},
        "a": {"gives": {"x": "any"}},
        "s": {"gives": {"v": "any"}},
        "b": {"needs": {"v": "any"}, "gives": {"y": "any"}},
        "g": {"needs": {"m": {"type": "any", "match": "value == 'go'"}, "x": "any", "y": "any"}},
        "h": {"needs": {"m": "any", "x": {"default": 0, "deadline": "wait"}, "v": "any"}},
    }
    table = start(steps, ["g", "h"])
    work(table, "a", {"error": "boom"})
    assert table.state.steps["b"].status == "skipped", "g cannot start any more, and only its gate is still open"
    assert apply(table, replan=True) == NOTHING


def test_a_step_stays_that_a_gate_waits_for_although_the_fact_was_given() -> None:
    steps = {
        "a": {"gives": {"x": "any"}},
        "p": {"needs": {"x": "any"}, "gives": {"f": "any"}},
        "h": {"needs": {"f": {"type": "any", "collect": "some", "default": [], "deadline": "1s"}}},
        "g": {"needs": {"f": {"type": "any", "match": "value == 'go'"}}},
    }
    table = start(steps, ["g", "h"], {"f": "no"})
    table.run(["deadline", "h", "f"], {})
    assert alive(table) == {"a": "active", "g": "pending", "h": "active", "p": "pending"}
    assert apply(table, replan=True) == NOTHING


def test_a_goal_that_is_to_be_achieved_although_its_outputs_were_given_stays() -> None:
    steps = {
        "a": {"gives": {"x": "any"}},
        "r": {"gives": {"m": "any"}},
        "g": {"needs": {"x": "any"}, "gives": {"f": "any"}},
        "h": {"needs": {"f": {"type": "any", "collect": "all"}, "m": {"type": "any", "match": "value == 'go'"}}},
    }
    table = start(steps, ["g", "h"], {"f": 1})
    work(table, "r", {"output": {"m": "no"}})
    assert alive(table) == {"a": "active", "g": "pending"}
    assert apply(table, replan=True) == NOTHING
