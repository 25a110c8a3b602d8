"""Events of tasks, in every style. Import them from ``weft.core.events``."""

from __future__ import annotations

from msgspec import Raw

from weft.core.budgets import Amounts, Cover
from weft.core.event_parts import ABSENT, DEFAULT_POLICY, NULL, Earlier, LogEvent, Path, Policy, Repetition, UndoPlan
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
    again: Repetition | None = None
    """Set if the work may have been performed before and its key, or a person's approval, must be recorded."""
    cover: Cover | None = None
    """What each attempt may cost at most. It is reserved before the attempt is handed out."""


class TaskSucceeded(LogEvent, frozen=True, kw_only=True, tag="task_succeeded"):
    task: EntryId
    output: Raw = NULL
    attempt: int = 1
    earlier: int = 0  # the delivery that succeeded, if a later delivery had replaced it
    copied: bool = False
    """Nobody performed the task here: the result is that of another run, or was set. It is not undone here."""
    spent: Amounts | None = None
    """What the attempt used, if it was covered or reported something. None if it is not known."""


class TaskFailed(LogEvent, frozen=True, kw_only=True, tag="task_failed"):
    """An attempt failed. If ``retry_at`` is 0, the task has failed for good."""

    task: EntryId
    failure: Failure
    attempt: int = 1
    retry_at: int = 0
    spent: Amounts | None = None
    """What the attempt used, as in ``TaskSucceeded``."""


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


class ResultSet(LogEvent, frozen=True, kw_only=True, tag="result_set"):
    """A person set the result of an entry. If the entry is open, the next event ends it.

    In a code run, ``output`` or ``failure`` replaces what was recorded, and the ``dropped`` entries are repeated.
    """

    entry: EntryId
    output: Raw = ABSENT
    failure: Failure | None = None
    dropped: list[int] = []
    earlier: dict[str, Earlier] = {}
    """The work that is repeated, by location."""
    forced: list[EntryId] = []
    """Irreversible tasks that were in flight. Their outcome is unknown."""
    performed: bool = False
    """Whether somebody did the work, so that it is undone if the run fails."""
    child: str = ""
    """The uid of the child run to stop."""
    reason: str = ""
    by: str = ""
