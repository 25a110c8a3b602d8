"""What goal runs record. The words are part of ``weft.core.events`` and asked for there.

The dispatch of a work item is a task_scheduled, child_started or ask_opened with its step (``node``) and its number
(``item``). Its outcome is told by the
events of tasks, children and questions.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from weft.core.ids import EntryId
from weft.core.parts import ABSENT, LogEvent
from weft.core.task_events import TaskScheduled
from weft.errors import Failure


class GoalPlanned(LogEvent, frozen=True, kw_only=True, tag="goal_planned"):
    """The plan that the run follows, with its definitions."""

    plan: Raw


class FactsGiven(LogEvent, frozen=True, kw_only=True, tag="facts_given"):
    """What had to be looked into before the run could begin: the given values one by one, where they lay in a blob, and
    whose matches they pass (``matched``) or break (``broken``), by fact and then by the step that reads it.
    """

    values: dict[str, Raw] = {}
    matched: dict[str, list[str]] = {}
    broken: dict[str, dict[str, str]] = {}


class FactRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value of a fact, by its place among the values of that fact; a list of places: an array of values."""

    fact: str
    at: int | list[int] = 0


class StepStarted(LogEvent, frozen=True, kw_only=True, tag="step_started"):
    """Its inputs are bound, for good: the values in ``inputs``, and by name those of ``facts`` that the log has.

    ``fan_out``: it has one work item per element, however many these are. ``task``: its only item, where that begins at
    once; it is given the inputs, and its number is the record's.
    """

    step: str
    inputs: Raw = ABSENT
    facts: dict[str, FactRef] = {}
    work_items: int = 1
    fan_out: bool = False
    task: TaskScheduled | None = None


class WorkSkipped(LogEvent, frozen=True, kw_only=True, tag="work_skipped"):
    """The predicate refuses one item of a fan-out."""

    step: str
    item: int


class WorkResumed(LogEvent, frozen=True, kw_only=True, tag="work_resumed"):
    """An item whose retry is due is handed out again."""

    task: EntryId


class WorkAccepted(LogEvent, frozen=True, kw_only=True, tag="work_accepted"):
    """Asynchronous work: the far side has it and answers later, until ``due``."""

    task: EntryId
    due: int


class WorkRecalled(LogEvent, frozen=True, kw_only=True, tag="work_recalled"):
    """The success that follows is one of an earlier run, for the same definition and inputs."""

    task: EntryId
    run_id: str
    at: int


class StepCompleted(LogEvent, frozen=True, kw_only=True, tag="step_completed"):
    """What a step gives: the values in ``outputs``, and those that ``takes`` finds in the result at number ``of``.

    ``takes``: by fact the part of the result, "" for the whole. Every value is set as a fact, but for ``unread``, which
    had a value before and is not read again. By fact, ``matched``: steps whose match it passes; ``broken``: steps whose
    match failed, with the reason.
    """

    step: str
    of: int = 0
    takes: dict[str, str] = {}
    outputs: dict[str, Raw] = {}
    unread: list[str] = []
    matched: dict[str, list[str]] = {}
    broken: dict[str, dict[str, str]] = {}


class AttributeSet(LogEvent, frozen=True, kw_only=True, tag="attribute_set"):
    """A fact has a value, or one more. Only in views: the log has it in step_completed."""

    name: str
    value: Raw = ABSENT
    provider: str
    matched: list[str] = []
    broken: dict[str, str] = {}


class StepFailedEvent(LogEvent, frozen=True, kw_only=True, tag="step_failed"):
    """``unsatisfied``: the needs that can no longer be met. What it had under way is dropped, or drains."""

    step: str
    failure: Failure
    unsatisfied: list[str] = []


class StepSkipped(LogEvent, frozen=True, kw_only=True, tag="step_skipped"):
    step: str
    reason: str
    unsatisfied: list[str] = []


class DeadlineSet(LogEvent, frozen=True, kw_only=True, tag="deadline_set"):
    """Until then a step that could start waits for an optional fact."""

    step: str
    name: str
    due: int


class DeadlinePassed(LogEvent, frozen=True, kw_only=True, tag="deadline_passed"):
    """The optional fact is decided without further values. ``timer``: the number of its deadline_set."""

    timer: EntryId
    step: str
    name: str
