"""Soundness: the token game of a graph, played with data forgotten, in every way it can go.

``check_soundness`` never looks at a value. A condition may hold or not, a for_each has no, one or two items, a loop
goes round once more at most, a node fails where somebody would take the failure. The moves are those of the real game,
so that what is found here is what a run would do.

Rules: docs/internals/graph.md#7-soundness-check.
"""

from weft.core.graph.soundness.flaws import Flaw, Verdict
from weft.core.graph.soundness.search import check_soundness

__all__ = ["Flaw", "Verdict", "check_soundness"]
