"""Where a run stands in its tree. Pure."""

from __future__ import annotations

from weft.core.run.state import State


def root_of(state: State) -> str:
    """The uid of the run at the root."""
    return state.root or state.uid


def depth_of(state: State) -> int:
    """How many runs there are from the root down to this one, both included."""
    return state.parent.depth if state.parent is not None else 1
