"""Real servers, killed, emptied, cut and replaced: no answered command is lost, no run is stuck, and hops are lost only
where the documentation says so.

A few runs each here, in `make proof`; ``python -m tests.hot.real_servers 1000`` plays all of it with a thousand.
"""

import os

import pytest

from tests.hot.real_servers import SCENARIOS, play

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

RUNS = int(os.environ.get("WEFT_HOT_RUNS", "40"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_only_what_the_documentation_names_is_lost(name: str) -> None:
    verdict = play(name, runs=RUNS, seed=1)
    assert verdict.is_sound(), verdict.summary()
