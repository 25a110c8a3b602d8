"""How much this process did in the last hour, in steps of ten seconds. Kept in memory."""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

STEP_SECONDS = 10
STEP_MS = STEP_SECONDS * 1000
STEPS = 360
COMMITS_MAX = 5_000
"""How many commits of one step are measured: the newest."""

SeriesName = Literal["runs", "steps", "commit_p99"]


class SeriesPoint(msgspec.Struct, frozen=True):
    """The values of one step. ``commit_p99`` is in milliseconds, and null if nothing was committed."""

    runs: float = 0.0
    steps: float = 0.0
    commit_p99: float | None = None


class Series:
    """Counts of the last hour. Times are milliseconds.

    Whoever counts adds to the fields, because that costs less than a call, and calls ``turn`` once the step has ended.
    """

    __slots__ = ("_points", "commits", "ends", "runs", "steps")

    def __init__(self) -> None:
        self._points: deque[tuple[int, SeriesPoint]] = deque(maxlen=STEPS)
        """The number of each step in which something happened, and its values."""
        self.ends = 0
        """When the step that is under way ends."""
        self.runs = 0
        """Runs that began in this step."""
        self.steps = 0
        """Attempts that ended in this step."""
        self.commits: deque[float] = deque(maxlen=COMMITS_MAX)
        """How long the commits of this step took, in seconds."""

    def turn(self, now: int) -> None:
        """End the step that was under way, and begin the one at this time."""
        if self.runs or self.steps or self.commits:
            slowest = sorted(self.commits)[int(len(self.commits) * 0.99)] if self.commits else None
            point = SeriesPoint(
                self.runs / STEP_SECONDS,
                self.steps / STEP_SECONDS,
                round(slowest * 1000, 3) if slowest is not None else None,
            )
            self._points.append((self.ends // STEP_MS - 1, point))
        self.ends = (now // STEP_MS + 1) * STEP_MS
        self.runs = self.steps = 0
        self.commits.clear()

    def points(self, now: int) -> tuple[int, list[SeriesPoint]]:
        """Return the time at which the first step began, and the values of all steps of the last hour.

        The step that is under way is left out.
        """
        if now >= self.ends:
            self.turn(now)
        end = now // STEP_MS
        known = dict(self._points)
        return (end - STEPS) * STEP_MS, [known.get(number, SeriesPoint()) for number in range(end - STEPS, end)]
