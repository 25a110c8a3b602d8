"""Agents in random worlds. See ``agent_worlds`` for what must hold."""

from __future__ import annotations

import pytest

from tests.agents.agent_worlds import play


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_what_must_hold_holds_whatever_fails(first: int) -> None:
    assert play(range(first, first + 10)).total() == 10


@pytest.mark.proof
@pytest.mark.parametrize("first", range(0, 2_000, 100))
def test_what_must_hold_holds_in_2000_worlds(first: int) -> None:
    ends = play(range(first, first + 100))
    assert ends.total() == 100
    assert len(ends) > 4, "worlds in which nothing happens show nothing"
