"""Events of goal runs. Import them from ``weft.core.events``.

A work item is dispatched by a task_scheduled, child_started or ask_opened event with its step (``node``) and its number
(``item``). Its outcome is recorded by the events of tasks, children and questions.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from weft.core.event_parts import ABSENT, LogEvent
from weft.core.ids import EntryId
from weft.core.task_events import TaskScheduled
from weft.errors import Failure


class GoalPlanned(LogEvent, frozen=True, kw_only=True, tag="goal_planned"):
    """The plan of the run, with the definitions of its steps."""

    plan: Raw


class FactsGiven(LogEvent, frozen=True, kw_only=True, tag="facts_given"):
    """The given values were checked, before the run begins.

    ``values`` has the values that are parts of a blob. ``matched`` lists, by fact, the steps whose ``match`` accepts
    the value. ``broken`` says, by fact and step, why a ``match`` could not be evaluated.
    """

    values: dict[str, Raw] = {}
    matched: dict[str, list[str]] = {}
    broken: dict[str, dict[str, str]] = {}


class FactRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reference to a value of a fact, by its index among the values.

    A list of indexes stands for an array of values.
    """

    fact: str
    at: int | list[int] = 0


class StepStarted(LogEvent, frozen=True, kw_only=True, tag="step_started"):
    """A step started with fixed inputs: values in ``inputs``, and references to recorded values in ``facts``.

    ``fan_out`` says that the step has one work item per element. ``task`` is the only item of the step, if it begins at
    once. That task has the inputs of the step and the number of this record.
    """

    step: str
    inputs: Raw = ABSENT
    facts: dict[str, FactRef] = {}
    work_items: int = 1
    fan_out: bool = False
    task: TaskScheduled | None = None


class WorkSkipped(LogEvent, frozen=True, kw_only=True, tag="work_skipped"):
    """The predicate rejected one item of a fan-out."""

    step: str
    item: int


class WorkResumed(LogEvent, frozen=True, kw_only=True, tag="work_resumed"):
    """An item whose retry is due is dispatched again."""

    task: EntryId


class WorkAccepted(LogEvent, frozen=True, kw_only=True, tag="work_accepted"):
    """An external service accepted asynchronous work and must answer before ``due``."""

    task: EntryId
    due: int


class WorkRecalled(LogEvent, frozen=True, kw_only=True, tag="work_recalled"):
    """The result that follows comes from an earlier run with the same definition and inputs."""

    task: EntryId
    run_id: str
    at: int


class StepCompleted(LogEvent, frozen=True, kw_only=True, tag="step_completed"):
    """A step completed. It sets the values in ``outputs``, and those that ``takes`` selects from the result in ``of``.

    ``takes`` maps a fact to a key of that result, or to "" for the whole result. Every value becomes a fact, except for
    ``unread`` facts, which already had a value and are not read again. By fact, ``matched`` lists the steps whose
    ``match`` accepts the value, and ``broken`` has the steps whose ``match`` could not be evaluated, with the reason.
    """

    step: str
    of: int = 0
    takes: dict[str, str] = {}
    outputs: dict[str, Raw] = {}
    unread: list[str] = []
    matched: dict[str, list[str]] = {}
    broken: dict[str, dict[str, str]] = {}


class AttributeSet(LogEvent, frozen=True, kw_only=True, tag="attribute_set"):
    """A fact has a new value. Only views show this event; the log has step_completed instead."""

    name: str
    value: Raw = ABSENT
    provider: str
    matched: list[str] = []
    broken: dict[str, str] = {}


class StepFailedEvent(LogEvent, frozen=True, kw_only=True, tag="step_failed"):
    """A step failed. Its open work is dropped or drained. ``unsatisfied`` lists the needs that can no longer be met."""

    step: str
    failure: Failure
    unsatisfied: list[str] = []


class StepSkipped(LogEvent, frozen=True, kw_only=True, tag="step_skipped"):
    step: str
    reason: str
    unsatisfied: list[str] = []


class DeadlineSet(LogEvent, frozen=True, kw_only=True, tag="deadline_set"):
    """A step that could start now waits for an optional fact until ``due``."""

    step: str
    name: str
    due: int


class DeadlinePassed(LogEvent, frozen=True, kw_only=True, tag="deadline_passed"):
    """The deadline for an optional fact passed. The step does not wait for more values of it.

    ``timer`` is the number of the deadline_set event.
    """

    timer: EntryId
    step: str
    name: str


class PatchedValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value of a fact after a patch. Without ``value``, it is the one that the patch or the provider has given."""

    provider: str = ""
    value: Raw = ABSENT
    matched: list[str] = []
    broken: dict[str, str] = {}


class RecalledStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outputs and results of a completed step that became a goal."""

    outputs: dict[str, Raw] = {}
    results: dict[int, Raw] = {}


class GoalChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The changes of a patch to a goal run, as part of run_patched.

    ``plan`` is the new plan, and ``definitions`` are other steps that a later patch can plan, as JSON. ``gone`` are the
    steps that leave the plan, ``taken_up`` those that were skipped and are pending again. ``forgotten`` are the
    deadlines of needs that changed, by step. ``filled`` has all values of the facts whose values or matches changed,
    those of the ``given`` facts too. ``recalled`` are completed steps that become goals.
    """

    plan: Raw
    definitions: Raw = ABSENT
    goals: list[str]
    given: dict[str, Raw] = {}
    gone: list[str] = []
    taken_up: list[str] = []
    forgotten: dict[str, list[str]] = {}
    filled: dict[str, list[PatchedValue]] = {}
    recalled: dict[str, RecalledStep] = {}
