"""The position of a run in its tree. Pure."""

from __future__ import annotations

from weft.core.run.state import State


def root_of(state: State) -> str:
    """Return the uid of the run at the root."""
    return state.root or state.uid


def depth_of(state: State) -> int:
    """Return the number of runs from the root to this one, including both."""
    return state.parent.depth if state.parent is not None else 1


def agents_of(state: State) -> int:
    """Return how many of the runs from the root to this one, including both, are runs of agents."""
    above = state.parent.agents if state.parent is not None else 0
    return above + state.is_agent
