"""What a committed event asks of the world. Derived, never stored: what was lost with a process is derived again."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from weft.core.commands import Mailed
from weft.core.events import Policy
from weft.core.ids import EntryId


class PerformTask(msgspec.Struct, frozen=True):
    """Hand out a task, not before ``due``. (task, attempt, delivery) must come back with its report."""

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
    """Set for an undo: ``input`` is then {input, result} of the task it takes back, and these names are picked from it.
    """


class ArmTimer(msgspec.Struct, frozen=True):
    """Send ``FireTimer`` at ``due``. ``mailed``: what it ends may be ended by mail too, which must be read first."""

    entry: EntryId
    due: int
    mailed: bool = False


class StopTask(msgspec.Struct, frozen=True):
    """Nobody waits for this task any more; its answer, if one comes, decides nothing."""

    task: EntryId


class DisarmTimer(msgspec.Struct, frozen=True):
    entry: EntryId


class EndRun(msgspec.Struct, frozen=True):
    """The run is over: stop what it still has under way, tell who waits for it."""


AnyEffect = PerformTask | ArmTimer | StopTask | DisarmTimer | EndRun


class OutgoingMail(msgspec.Struct, frozen=True):
    """A command to another run, posted in the commit of the event that causes it."""

    to: str
    command: Mailed
    create: bool = False
    """The run is made by it: its first piece of mail."""
