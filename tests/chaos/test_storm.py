"""Real processes over a real server in bad weather: nothing acknowledged is lost, nothing recorded is repeated, nothing
stands still.

A squall here, in `make proof`; `make chaos` is the whole storm, and ``WEFT_CHAOS=1000`` makes this test one of a
thousand runs.
"""

from __future__ import annotations

import os

import pytest

from tests.chaos.storm import short, weather, whole
from tests.chaos.verdict import TAKEOVER_SECONDS_MAX

pytestmark = pytest.mark.proof

RUNS = int(os.environ.get("WEFT_CHAOS", "0"))


def test_nothing_is_lost_or_repeated_or_stuck_whatever_dies() -> None:
    plan = whole(RUNS, seed=1) if RUNS else short(150, seed=1)

    found = weather(plan)

    assert (found.kills > 2, len(found.frozen), len(found.outages)) == (True, 1, len(plan.outages)), found.summary()
    assert (found.lost, found.repeated, found.stuck, found.torn, found.broken) == ([], [], [], [], []), found.summary()
    assert found.effects > plan.runs
    if RUNS:  # on a machine that does nothing else
        assert all(took <= TAKEOVER_SECONDS_MAX for took in found.takeovers()), found.adopted
