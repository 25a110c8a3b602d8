"""Flaws in a graph, as messages with the shortest path that leads to each. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.core.findings import Finding, Severity

MOVES_SHOWN_MAX = 40


class Flaw(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that may go wrong. ``moves``: what a run does until then; empty if no path leads there."""

    code: str
    node: str
    message: str
    moves: list[str] = []
    suggestion: str = ""
    severity: Severity = "error"

    def finding(self) -> Finding:
        """Return the flaw as a finding."""
        text = f"{self.message} Shown by: {self.way}." if self.moves else self.message
        path = f"nodes.{self.node}" if self.node else ""
        return Finding(f"graph.{self.code}", text, path, suggestion=self.suggestion, severity=self.severity)

    @property
    def way(self) -> str:
        """The moves on one line. For a long path only its beginning and end."""
        return "; ".join(shorten_moves(self.moves))


class Verdict(msgspec.Struct, frozen=True):
    """The result of the check. ``unknown``: nothing wrong was found, but not everything could be examined."""

    outcome: Literal["sound", "unsound", "unknown"]
    flaws: list[Flaw]
    positions: int

    def findings(self) -> list[Finding]:
        found = [flaw.finding() for flaw in self.flaws]
        if self.outcome == "unknown":
            message = f"nothing wrong was found in {self.positions:,} positions, but there are more."
            suggestion = "Put parts of the graph into graphs of their own (workflow) and check those."
            found.append(Finding("graph.not_checked", message, suggestion=suggestion, severity="warning"))
        return found


def shorten_moves(moves: list[str]) -> list[str]:
    """Return the moves, or for a long path its beginning and end."""
    if len(moves) <= MOVES_SHOWN_MAX:
        return moves
    half = MOVES_SHOWN_MAX // 2
    return [*moves[:half], f"... {len(moves) - 2 * half} more ...", *moves[-half:]]
