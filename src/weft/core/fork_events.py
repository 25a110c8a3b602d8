"""Events of forks, and of work that is held back until it is known whether it may be performed.

Import them from ``weft.core.events``.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from weft.core.event_parts import ABSENT, NULL, LogEvent
from weft.core.ids import EntryId

Effects = Literal["perform", "reuse", "none"]
"""What a fork does with work after its point: perform it, reuse results of the original, or have no effects."""


class RestartedChild(msgspec.Struct, frozen=True, omit_defaults=True):
    """A child that was open at the point of a fork, and begins again as a child of the fork."""

    entry: int
    uid: str
    run_id: str


class KnownResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """A result that the original of a fork has for a step: at which place, and for which input."""

    place: str
    step: str
    digest: str
    """The digest of the input."""
    use: int = 0
    """Which use of this step with this input it was after the point, from 1; 0 if it was before the point."""
    output: Raw = NULL
    once: bool = False
    """Whether its effect was irreversible when it was performed."""


class RunForked(LogEvent, frozen=True, kw_only=True, tag="run_forked"):
    """Ends the part of the log that a fork shares with its original. What was open there begins anew."""

    effects: Effects = "perform"
    children: list[RestartedChild] = []
    yes: list[str] = []
    """Places of work that may be performed without asking, though its effect is irreversible."""
    by: str = ""
    reason: str = ""


class ResultsKnown(LogEvent, frozen=True, kw_only=True, tag="results_known"):
    """Results of the original that the fork may use instead of performing the work."""

    results: list[KnownResult]


class RunEdited(LogEvent, frozen=True, kw_only=True, tag="run_edited"):
    """Changes that were made to a fork before it goes on. Each field that is not empty replaces what was there.

    ``input`` is the whole input. ``results`` has results by place, ``state`` values of a graph's state, and ``given``
    facts of a goal run.
    """

    input: Raw = ABSENT
    results: dict[str, Raw] = {}
    state: dict[str, Raw] = {}
    given: dict[str, Raw] = {}
    version: str = ""
    by: str = ""


class EntriesDropped(LogEvent, frozen=True, kw_only=True, tag="entries_dropped"):
    """The code of a fork no longer asks for these entries of its original. What it asks for is performed anew."""

    dropped: list[int]


class TaskReleased(LogEvent, frozen=True, kw_only=True, tag="task_released"):
    """A task that was held back may be performed.

    ``approved`` is the place, named in a retry or a fork, at which somebody approved it beforehand.
    """

    task: EntryId
    approved: str = ""


class PerformAsked(LogEvent, frozen=True, kw_only=True, tag="perform_asked"):
    """People are asked whether a task may be performed. Its effect is irreversible, and may have happened before."""

    task: EntryId
    title: str
    about: Raw = NULL
