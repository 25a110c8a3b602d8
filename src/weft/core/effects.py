"""The effects of a committed event: work that the runtime must do.

Effects are never stored. After a crash, they are derived from the state.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from weft.core.budgets import Cover
from weft.core.commands import Mailed
from weft.core.events import Policy
from weft.core.ids import EntryId


class PerformTask(msgspec.Struct, frozen=True):
    """Dispatch a task, not before ``due``. Its report must repeat (task, attempt, delivery)."""

    task: EntryId
    attempt: int
    delivery: int
    step: str
    input: Raw
    key: str
    location: str
    policy: Policy
    due: int = 0
    inline: bool = False
    takes: list[str] | None = None
    """Set for an undo: the names that are passed to it from ``input``, which is {input, result} of the undone task."""
    cover: Cover | None = None
    """What the call may cost at most. It is reserved in the append that dispatches the task."""


class ArmTimer(msgspec.Struct, frozen=True):
    """Send ``FireTimer`` at ``due``.

    If ``mailed``, a command in the inbox may end the wait before the timer does, so read the inbox first.
    """

    entry: EntryId
    due: int
    mailed: bool = False


class StopTask(msgspec.Struct, frozen=True):
    """Stop a task whose result is no longer needed. A late result has no effect."""

    task: EntryId


class DisarmTimer(msgspec.Struct, frozen=True):
    """Cancel the timer of an entry."""

    entry: EntryId


class EndRun(msgspec.Struct, frozen=True):
    """Stop the remaining work of a run that is over, and notify callers that wait for its result."""


AnyEffect = PerformTask | ArmTimer | StopTask | DisarmTimer | EndRun


class OutgoingMail(msgspec.Struct, frozen=True):
    """A command to another run, sent in the same commit as the event that causes it."""

    to: str
    command: Mailed
    create: bool = False
    """Whether this command creates the run."""
