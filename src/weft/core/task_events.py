"""What is recorded of tasks, in every style. The words are part of ``weft.core.events`` and asked for there."""

from __future__ import annotations

from msgspec import Raw

from weft.core.ids import EntryId
from weft.core.parts import ABSENT, DEFAULT_POLICY, NULL, LogEvent, Path, Policy, UndoPlan
from weft.errors import Failure


class TaskScheduled(LogEvent, frozen=True, kw_only=True, tag="task_scheduled"):
    """Work for outside: of an entry of code (``at``), of a token of a graph at a node, or of an item of a goal's step
    (``node``). Without ``input`` it is given what its record says: what the token before brings, or the bound inputs of
    its step.
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
    earlier: int = 0  # the delivery that succeeded, if it had been given up for a later one


class TaskFailed(LogEvent, frozen=True, kw_only=True, tag="task_failed"):
    """An attempt failed. ``retry_at`` 0: for good."""

    task: EntryId
    failure: Failure
    attempt: int = 1
    retry_at: int = 0


class TaskLost(LogEvent, frozen=True, kw_only=True, tag="task_lost"):
    """Whoever performed it is gone without an answer; it is handed out again under this delivery number."""

    task: EntryId
    delivery: int
    retry_at: int = 0


class UndoScheduled(LogEvent, frozen=True, kw_only=True, tag="undo_scheduled"):
    """The newest completed task that is not undone yet is taken back. Its own number is the undo's task number."""

    of: EntryId
    step: str
    input: Raw
