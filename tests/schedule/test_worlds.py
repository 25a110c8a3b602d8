"""Two hosts, clocks that jump, clocks that change, outages: each nominal time is decided exactly once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.scale import first
from tests.schedule.worlds import ZONES, changes, failures

PER_CHUNK = 20
WORLDS = 1_000
"""In ``make proof``, and 200 in ``make test``; ``python -m tests.schedule.soak`` plays 20,000."""
FAULTS = {"kill", "freeze", "jump", "outage", "before", "after", "late", "slow", "die_before", "die_after"}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_the_zones_change_their_clocks_both_ways_and_one_by_half_an_hour() -> None:
    assert all(len(changes(zone)) == 2 for zone in ZONES)
    assert "Australia/Lord_Howe" in ZONES


@pytest.mark.parametrize("seed", first(10, range(0, WORLDS, PER_CHUNK)))
def test_each_nominal_time_is_fired_or_missed_exactly_once(seed: int) -> None:
    seen: Counter[str] = Counter()

    assert failures(range(seed, seed + PER_CHUNK), seen) == {}
    assert seen["kill"]
    assert seen["jump"]


@pytest.mark.proof
def test_these_worlds_see_every_fault() -> None:
    seen: Counter[str] = Counter()
    failures(range(500, 530), seen)

    assert seen.keys() >= FAULTS
