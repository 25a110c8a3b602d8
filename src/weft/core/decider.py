"""The shape of every style: a few pure functions over a state, held together by a machine.

A machine owns the state of one run and lends it to nobody. ``decide`` answers a command with the events it would cause
and changes nothing; ``evolve`` takes an event in and is the only place where the state changes; ``follow`` gives what
the state by itself demands next (an undo, the end) and is asked until it gives nothing; ``effects`` says what a
committed event asks of the world, ``mail`` what it tells other runs in the same commit, and ``outstanding`` gives the
effects of all that is open, which is all that recovery needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from weft.core import values
from weft.core.commands import AnyCommand, Mailed
from weft.core.effects import AnyEffect, PerformTask
from weft.core.events import AnyEvent
from weft.core.state import State
from weft.errors import Refused

SchemaCheck = Callable[[dict[str, Any], bytes], str | None]


class Question(msgspec.Struct, frozen=True):
    """A condition or predicate that no pure decision may evaluate, with the values it looks at, as JSON.

    The same question always has the same answer, so whoever has heard it may remember it.
    """

    language: str
    source: str
    values: bytes


class Wanting(Exception):
    """A decision needs what only the shell can bring: blobs, or the answer to a question.

    Nothing has happened; the same decision is asked for again when the shell has it.
    """

    def __init__(self, *, blobs: Sequence[str] = (), questions: Sequence[Question] = ()) -> None:
        super().__init__("something must be brought first")
        self.blobs = list(blobs)
        self.questions = list(questions)


def no_blob(_: str) -> bytes | None:
    """Nothing is in memory."""
    return None


def opened_now(_: Raw, read: Callable[[], Any]) -> Any:
    """Nothing is remembered."""
    return read()


def any_child(_: State) -> None:
    """There is no limit."""


def kept_inline(raw: bytes) -> Raw:
    """A value for the log, where nothing is too large for it."""
    return Raw(values.seal(raw))


class Env(msgspec.Struct, frozen=True):
    """Facts from outside that a decision may use."""

    now: int
    check: SchemaCheck
    """Whether JSON fits a JSON Schema: None, or what is wrong with it."""
    blob: Callable[[str], bytes | None] = no_blob
    """The content of a blob, if it is in memory."""
    keep: Callable[[bytes], Raw] = kept_inline
    """JSON as the log holds it: itself, or a reference to a blob that is durable before the append is."""
    check_child: Callable[[State], None] = any_child
    """Refuse to start another child of this run. Raises LimitExceeded, RunCancelled."""
    recall: Callable[[Raw, Callable[[], Any]], Any] = opened_now
    """A large value that many decisions look into: as it was opened before, or as the function opens it now."""


def unknown_command(run_id: str, style: str, command: AnyCommand) -> Refused:
    """The refusal of a command that runs of this style do not know."""
    words = "".join(f" {char.lower()}" if char.isupper() else char for char in type(command).__name__)
    return Refused(f"{run_id} is a {style} run; it cannot be told to{words}.")


class Letter(msgspec.Struct, frozen=True):
    """A command to another run, posted in the commit of the event that causes it."""

    to: str
    command: Mailed
    create: bool = False
    """The run is made by it: its first piece of mail."""


class Machine(Protocol):
    """One run's decider."""

    @property
    def state(self) -> State: ...

    def decide(self, command: AnyCommand, env: Env) -> Sequence[AnyEvent]:
        """What the command causes.

        Nothing, if it is late or known. Raises Refused or BadValue: rejected, nothing happened.
        """
        ...

    def follow(self, env: Env) -> Sequence[AnyEvent]:
        """What must happen next by itself. Raises Wanting."""
        ...

    def evolve(self, event: AnyEvent, *, at: int) -> None:
        """Take in the next event. Total: never raises on an event that ``decide`` can give in this state."""
        ...

    def effects(self, event: AnyEvent) -> Sequence[AnyEffect]:
        """What an event that was just taken in asks of the world."""
        ...

    def mail(self, event: AnyEvent) -> Sequence[Letter]:
        """What an event that was just taken in tells other runs."""
        ...

    def outstanding(self) -> Sequence[AnyEffect]:
        """The effects of everything that is open."""
        ...

    def perform(self, number: int) -> PerformTask:
        """The hand-out of an open task."""
        ...

    def due_of(self, number: int) -> int:
        """The time that something open waits for (0: none); number 0 is the run's own deadline."""
        ...

    def location(self, number: int) -> str:
        """Where something open stands, for people."""
        ...

    def snapshot(self) -> bytes:
        """The state as JSON."""
        ...
