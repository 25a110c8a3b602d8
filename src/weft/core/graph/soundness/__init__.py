"""Soundness: play the token game of a graph without data, in every way it can go.

``check_soundness`` never reads a value. A condition may be true or false, a for_each has 0, 1 or 2 items, a loop goes
back at most once, and a node may fail where something would handle the failure. The moves are those of the real game,
so the findings apply to real runs.

Rules: docs/internals/graph.md#7-soundness-check.
"""

from weft.core.graph.soundness.flaws import Flaw, Verdict
from weft.core.graph.soundness.search import check_soundness

__all__ = ["Flaw", "Verdict", "check_soundness"]
