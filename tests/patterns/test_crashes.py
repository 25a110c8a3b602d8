"""The graphs of the patterns come to the same end when the process dies at any write of theirs."""

from __future__ import annotations

from typing import Any

import pytest

from tests import scale
from tests.patterns.kit import after, pattern, same
from weft.testing import World, crash_everywhere

HOUR = 3600
SIGNERS = {"anna": after(3 * HOUR, "anna"), "ben": after(HOUR, "ben"), "carla": after(2 * HOUR, "carla")}
OFFERS = {"offer": after(lambda hours: hours * HOUR, same)}

CASES: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {
    1: ({}, {}),
    3: ({}, {"bill": after(HOUR, "bill")}),
    7: ({"fire": True, "injured": False}, {}),
    8: ({}, {}),
    9: ({}, {}),
    12: ({"readers": ["Ada", "Bob"]}, {}),
    13: ({}, {}),
    14: ({"lines": [3, 1, 2]}, {"check": after(same, lambda line: line * 10)}),
    16: ({}, {}),
    18: ({}, {}),
    21: ({}, {"taste": {"good": False}}),
    22: ({"n": 3}, {}),
    25: ({}, {}),
    26: ({"places": [3, 1]}, {"walk": after(lambda hours: hours * HOUR, same)}),
    30: ({}, SIGNERS),
    32: ({}, SIGNERS),
    33: ({}, {}),
    35: ({"suppliers": [9, 2, 5, 1]}, OFFERS),
    37: ({"damage": True, "injured": True, "expensive": True}, {}),
    38: ({"dirty": True}, {"inspect": {"clean": True}}),
    40: ({"order": ["scan", "weigh", "label"]}, {}),
    43: ({}, {}),
}


@pytest.mark.parametrize("number", scale.sample(5, CASES))
def test_a_pattern_comes_to_the_same_end_after_a_crash_at_any_write(number: int) -> None:
    given, answers = CASES[number]
    bench = pattern(number, answers)
    expected = bench.run(**given)

    def scenario(world: World) -> None:
        bench.speak(world)
        run = world.start(bench.graph, given)
        assert run.result() == expected
        assert world.missed_crashes() == []

    assert crash_everywhere(bench.app, scenario) >= 6
