"""Counts of the tool calls of agents, by the name of the tool. Never by run."""

from __future__ import annotations

import msgspec

from weft.core.budgets import Cover
from weft.core.commands import ReportTaskFailed, ReportTaskSucceeded
from weft.errors import OutcomeUnknown
from weft.runtime.worker.flight import Report

TOOLS_MAX = 1_000
OTHER = "(other)"
"""The name under which the calls of further tools are counted."""


class ToolCounts(msgspec.Struct):
    """How one tool was called on this host since it started."""

    calls: dict[str, int] = {}
    """By outcome: succeeded, failed, unknown, refused."""
    seconds: float = 0.0


class ToolMeter:
    """Counts calls."""

    def __init__(self) -> None:
        self.counts: dict[str, ToolCounts] = {}

    def count(self, cover: Cover, report: Report, seconds: float) -> None:
        """Count an attempt that ended, if it was a tool call."""
        for tool in cover.amounts.per_tool:
            if isinstance(report, ReportTaskSucceeded):
                self._add_count(tool, "succeeded", seconds)
            elif isinstance(report, ReportTaskFailed):
                is_unknown = report.failure.code == OutcomeUnknown.code
                self._add_count(tool, "unknown" if is_unknown else "failed", seconds)

    def refuse(self, tool: str) -> None:
        """Count a call that the policy or a person refused."""
        self._add_count(tool, "refused", 0.0)

    def _add_count(self, tool: str, outcome: str, seconds: float) -> None:
        name = tool if tool in self.counts or len(self.counts) < TOOLS_MAX else OTHER
        counts = self.counts.setdefault(name, ToolCounts())
        counts.calls[outcome] = counts.calls.get(outcome, 0) + 1
        counts.seconds += seconds
