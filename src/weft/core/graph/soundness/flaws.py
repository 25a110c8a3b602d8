"""What the search found, in words: each flaw with the shortest way that shows it. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.core.findings import Finding, Severity

MOVES_SHOWN_MAX = 40


class Flaw(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that may go wrong. ``moves``: what a run does until then; empty where nothing leads there at all."""

    code: str
    node: str
    message: str
    moves: list[str] = []
    suggestion: str = ""
    severity: Severity = "error"

    def finding(self) -> Finding:
        """The flaw as one line."""
        text = f"{self.message} Shown by: {self.way}." if self.moves else self.message
        path = f"nodes.{self.node}" if self.node else ""
        return Finding(f"graph.{self.code}", text, path, suggestion=self.suggestion, severity=self.severity)

    @property
    def way(self) -> str:
        """The moves on one line; of a long way only the two ends."""
        return "; ".join(shortened(self.moves))


class Verdict(msgspec.Struct, frozen=True):
    """``unknown``: nothing wrong was found, and there was more than could be looked at."""

    outcome: Literal["sound", "unsound", "unknown"]
    flaws: list[Flaw]
    positions: int

    def findings(self) -> list[Finding]:
        found = [flaw.finding() for flaw in self.flaws]
        if self.outcome == "unknown":
            message = f"nothing wrong was found in {self.positions:,} positions, and there are more of them."
            suggestion = "Put parts of the graph into graphs of their own (workflow) and check those."
            found.append(Finding("graph.not_checked", message, suggestion=suggestion, severity="warning"))
        return found


def shortened(moves: list[str]) -> list[str]:
    """The moves, or of a long way its two ends."""
    if len(moves) <= MOVES_SHOWN_MAX:
        return moves
    half = MOVES_SHOWN_MAX // 2
    return [*moves[:half], f"... {len(moves) - 2 * half} more ...", *moves[-half:]]
