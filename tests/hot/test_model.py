"""Every interleaving of the rules of the hot path keeps its promises, and each rule is there for a reason."""

from __future__ import annotations

import pytest

from tests.hot.model import RULES, Plan
from tests.hot.model_plans import CAUGHT, LARGE, SMALL, WILD
from tests.hot.model_search import explore, walk
from tests.scale import MARKS, first, sample, scaled

pytestmark = MARKS
WALKS = scaled(150, 5_000)
"""``python -m tests.hot.model_soak`` walks 20,000 times."""
PER_CHUNK = 50
STATES_MAX = scaled(5_000, 60_000)


def test_no_interleaving_of_a_small_world_breaks_a_promise() -> None:
    found = explore(SMALL)

    assert not found.breach, str(found)
    assert found.is_whole


@pytest.mark.parametrize("name", first(1, LARGE))
def test_no_interleaving_of_a_larger_world_breaks_a_promise(name: str) -> None:
    found = explore(LARGE[name], states_max=STATES_MAX)

    assert not found.breach, str(found)


@pytest.mark.parametrize("chunk", range(WALKS // PER_CHUNK))
def test_no_walk_through_the_largest_world_breaks_a_promise(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        found = walk(WILD, seed)

        assert not found.breach, f"seed {seed}: {found}"


@pytest.mark.parametrize("rule", sample(4, RULES))
def test_a_rule_that_is_switched_off_is_missed(rule: str) -> None:
    plan, invariant = CAUGHT[rule]

    found = explore(plan, frozenset({rule}), states_max=100_000)

    assert found.breach == invariant, f"{RULES[rule]}: {found}"


@pytest.mark.parametrize("rule", sample(3, RULES))
def test_the_world_that_shows_what_a_rule_is_for_keeps_its_promises_with_the_rule(rule: str) -> None:
    plan: Plan = CAUGHT[rule][0]

    found = explore(plan, states_max=scaled(3_000, 100_000))

    assert not found.breach, str(found)
