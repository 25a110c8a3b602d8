"""Events of tasks, in every style. Import them from ``weft.core.events``."""

from __future__ import annotations

from msgspec import Raw

from weft.core.event_parts import ABSENT, DEFAULT_POLICY, NULL, LogEvent, Path, Policy, UndoPlan
from weft.core.ids import EntryId
from weft.errors import Failure


class TaskScheduled(LogEvent, frozen=True, kw_only=True, tag="task_scheduled"):
    """A task was scheduled: for code (``at``), for a token at a graph node, or for an item of a goal step (``node``).

    Without ``input``, the task uses the output that its token carries, or the inputs of its goal step.
    """

    step: str
    input: Raw = ABSENT
    at: Path = []
    node: str = ""
    token: str = ""
    item: int = 0
    digest: str = ""
    add: list[str] = []
    policy: Policy = DEFAULT_POLICY
    undo: UndoPlan | None = None
    inline: bool = False
    early: bool = False
    raises: list[str] = []


class TaskSucceeded(LogEvent, frozen=True, kw_only=True, tag="task_succeeded"):
    task: EntryId
    output: Raw = NULL
    attempt: int = 1
    earlier: int = 0  # the delivery that succeeded, if a later delivery had replaced it


class TaskFailed(LogEvent, frozen=True, kw_only=True, tag="task_failed"):
    """An attempt failed. If ``retry_at`` is 0, the task has failed for good."""

    task: EntryId
    failure: Failure
    attempt: int = 1
    retry_at: int = 0


class TaskLost(LogEvent, frozen=True, kw_only=True, tag="task_lost"):
    """The worker disappeared without a result. The task is dispatched again with this delivery number."""

    task: EntryId
    delivery: int
    retry_at: int = 0


class UndoScheduled(LogEvent, frozen=True, kw_only=True, tag="undo_scheduled"):
    """The undo of a completed task begins, newest task first. This event's number is the number of the undo task."""

    of: EntryId
    step: str
    input: Raw
