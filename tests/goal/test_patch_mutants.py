"""Every rule of patches is noticed when it is switched off: by a golden case, a test of the rule or a random run."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

import msgspec
import pytest

from tests import scale
from tests.goal import test_patch_golden, test_patches, test_random_patches, test_replan
from tests.goal.random_patches import PatchedWorld
from weft.core.goal import style
from weft.core.goal.definitions import StepDef
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.patch import apply, judge, pool, replan, values
from weft.core.goal.patch.request import GoalJudgement
from weft.core.goal.planner import KnownFacts
from weft.core.goal.state import GoalState, StepRun

WORLDS = 60
Mutant = contextlib.AbstractContextManager[Any]


def changed(part: Any, name: str, new: Any) -> Mutant:
    return mock.patch.object(part, name, new)


def with_known(**fields: Any) -> Mutant:
    known = values.FactValues.known

    def other(self: Any, *args: Any) -> KnownFacts:
        found = known(self, *args)
        return msgspec.structs.replace(found, **{name: make(found) for name, make in fields.items()})

    return changed(values.FactValues, "known", other)


def without_change(field: str, empty: Any) -> Mutant:
    make = judge._goal_change
    return changed(judge, "_goal_change", lambda *args: msgspec.structs.replace(make(*args), **{field: empty}))


def everything_given(definition: StepDef, run: StepRun, *, failed: bool) -> list[str]:
    return list(definition.gives)


def begun_is_open(run: StepRun, *, failed: bool) -> bool:
    return True


@contextlib.contextmanager
def every_end_is_allowed() -> Iterator[None]:
    """The trial finds nothing to refuse."""
    attempt = judge._try_change

    def lenient(run: Any, change: Any, env: Any, *, ends: bool) -> Any:
        found = attempt(run, change, env, ends=True)
        return found if not found.findings else GoalJudgement([], change, found.does)

    with changed(judge, "_try_change", lenient):
        yield


def nothing_read(state: GoalState, steps: Any, flow: NeedCounts) -> set[str]:
    return set()


def keep_windows(items: Any, flow: Any) -> None:
    return None


MUTANTS: dict[str, Callable[[], Mutant]] = {
    "what has begun still has needs": lambda: changed(
        replan, "_definition_for_planner", lambda state, pool, step: pool.steps[step]
    ),
    "what is over still gives": lambda: changed(replan, "gives_of", everything_given),
    "what steps gave satisfies goals and blocks": lambda: with_known(given=lambda found: found.values),
    "no provider is cut off": lambda: with_known(met=lambda _: frozenset()),
    "what is dead is lacking": lambda: changed(judge, "dead_needs", lambda *_: frozenset()),
    "goals without a definition are unknown": lambda: changed(pool, "undefined_goals", lambda *_: {}),
    "removed goals without a definition are forgotten": lambda: changed(apply, "undefined_goals", lambda *_: {}),
    "skipped steps are taken up although nothing needs them": lambda: changed(
        judge, "_without_unneeded_steps", lambda run, change: change
    ),
    "given facts cut off steps that a gate waits for": lambda: changed(judge, "awaited_needs", lambda *_: {}),
    "planned goals are satisfied later": lambda: changed(judge, "goals_left", lambda *_: frozenset()),
    "skipped steps are not taken up": lambda: without_change("taken_up", []),
    "deadlines are not forgotten": lambda: without_change("forgotten", {}),
    "matches and values are not filled": lambda: without_change("filled", {}),
    "outputs of added goals are not recalled": lambda: without_change("recalled", {}),
    "definitions that are not planned are lost": lambda: without_change("definitions", msgspec.Raw(b"")),
    "facts that were read change": lambda: changed(judge, "facts_read", nothing_read),
    "readings are forgotten with the step": lambda: changed(apply, "facts_read", nothing_read),
    "dropped goals are added": lambda: changed(judge, "_find_dropped_goals", lambda *_: iter(())),
    "a patch may end the run": every_end_is_allowed,
    "what has begun is replaced": lambda: changed(pool, "may_replace", begun_is_open),
    "what has begun leaves": lambda: changed(replan, "staying_steps", lambda *_: []),
    "decided deadlines go on": lambda: changed(style, "close_decided_windows", keep_windows),
    "a replaced step is not noted": lambda: changed(apply, "_note_replaced_definition", lambda *_: None),
    "cycles and clashes are not found": lambda: changed(replan, "_find_clashes", lambda *_: iter(())),
    "blocked goals are not found": lambda: changed(replan, "_blocked_goals", lambda *_: iter(())),
    "missing facts are not found": lambda: changed(replan, "_missing_facts", lambda *_: iter(())),
    "types of given values are not checked": lambda: changed(values.FactValues, "check_types", lambda *_: None),
}


def checks() -> Iterator[Callable[[], None]]:
    for path in test_patch_golden.CASES:
        yield partial(test_patch_golden.test_a_golden_patch, path)
    for name, test in (*vars(test_patches).items(), *vars(test_replan).items()):
        if name.startswith("test_") and not hasattr(test, "pytestmark"):
            yield test
    yield partial(test_patches.test_values_that_are_read_only_now_come_from_the_log, {"collect": "last"}, 2)
    yield partial(test_replan.test_a_goal_that_was_satisfied_at_the_start_stays_satisfied, {"replan": True})
    for seed in range(WORLDS):
        yield partial(test_random_patches.play, PatchedWorld(seed), Counter())


@pytest.mark.parametrize("rule", scale.sample(4, sorted(MUTANTS)))
def test_a_rule_that_is_switched_off_is_noticed(rule: str) -> None:
    with MUTANTS[rule]():
        for check in checks():
            try:
                check()
            except (Exception, pytest.fail.Exception):  # any failure will do
                return
    pytest.fail(f"nothing notices that {rule}")
