"""The explanation of a run, in sentences and as data."""

from __future__ import annotations

from datetime import datetime

import msgspec

from weft.observe.diagnosis import Diagnosis, Progress


class Waiting(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a run waits for, described in words."""

    kind: str
    location: str
    what: str
    since: datetime
    until: datetime | None = None
    unblock: str = ""


class StyleSentences(msgspec.Struct, frozen=True):
    """The sentences that depend on the style of a run. ``Explanation`` describes the fields."""

    path: list[str] = []
    skipped: list[str] = []
    joins: list[str] = []


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a run is not done yet."""

    run: str
    workflow: str
    status: str
    summary: str
    waiting: list[Waiting]
    steps_done: int
    hint: str = ""
    path: list[str] = []
    """The path of a graph run with its reasons, or the running and ended steps of a goal run, in sentences."""
    skipped: list[str] = []
    """The nodes or steps that did not run, and why not."""
    joins: list[str] = []
    """What the joins of a graph, or the pending steps of a goal run, still wait for."""
    style: str = "code"
    progress: list[Progress] = []
    """The progress of maps, fan-outs and work items."""
    code: str = ""
    """If the run cannot be read, the code of the error (``weft help CODE``)."""
    diagnosis: Diagnosis | None = None
    """The same as data, with locations and ids; None if the run cannot be read."""

    def __str__(self) -> str:
        lines = [f"{self.run} ({self.workflow}) is {self.status}: {self.summary}"]
        lines += [f"  {part}" for part in self.progress]
        for item in self.waiting:
            until = f", until {item.until:%Y-%m-%d %H:%M:%S}" if item.until is not None else ""
            lines.append(f"  {item.location}: {item.what} since {item.since:%Y-%m-%d %H:%M:%S}{until}")
            if item.unblock:
                lines.append(f"      {item.unblock}")
        lines += [f"  {sentence}" for sentence in (*self.joins, *self.path, *self.skipped)]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)
