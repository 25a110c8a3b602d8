"""What steps print and log, line by line. It is stored apart from the logs of runs, and bounded for each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from weft.core.ids import HostId, Millis, RunUid


class NewLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line to store."""

    uid: RunUid
    at: Millis
    place: str
    """The place in the run that wrote it."""
    attempt: int
    """The attempt of the step; one more after each failure and each repetition after a crash."""
    level: int
    """As in ``logging``: 10 for debug, 20 for info, 30 for warning, 40 for error, 50 for critical."""
    source: str
    """The name of the logger; ``stdout`` or ``stderr`` for what was printed."""
    text: str
    lost: int = 0
    """How many lines just before this one were left out. They have numbers, too."""


class StoredLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a step printed or logged. A gap between two numbers says how many lines were left out there."""

    number: int
    """Counts the lines of the run from 1, including those that were left out."""
    at: Millis
    place: str
    attempt: int
    level: int
    source: str
    text: str


class LogLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept of what the steps of one run print. Above that, the oldest lines are deleted."""

    lines: int = 10_000
    size_bytes: int = 1024 * 1024
    """Counts the text in UTF-8."""

    def trimmed(self) -> LogLimits:
        """Return how much is left after lines were deleted. It is less than the limit, so that deleting is rare."""
        return LogLimits(lines=self.lines * 3 // 4, size_bytes=self.size_bytes * 3 // 4)


class LogBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of any runs, from one host. The batches of a host are numbered in the order in which they are written."""

    host: HostId
    number: int
    lines: Sequence[NewLine]


class LogTotals(msgspec.Struct, frozen=True):
    """How many lines a run has."""

    last: int = 0
    """The number of the last line."""
    lines: int = 0
    """How many lines are stored. The others were left out."""
    size_bytes: int = 0


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of a run to read."""

    after: int = 0
    """Only lines with numbers above this one."""
    limit: int = 1_000
    level: int = 0
    """Only lines of at least this level."""
    place: str | None = None


class StepLogs(Protocol):
    """What the steps of runs print and log."""

    async def write(self, batch: LogBatch, limits: LogLimits) -> None:
        """Append all lines or none, in this order. They are durable when this returns.

        Lines of runs that do not exist are left out. A batch that is written again directly after itself has no effect.
        """
        ...

    async def read(self, uid: RunUid, query: LogQuery) -> Sequence[StoredLine]:
        """Return lines in order."""
        ...

    async def totals(self, uid: RunUid) -> LogTotals:
        """Return how many lines a run has, all 0 if none."""
        ...
