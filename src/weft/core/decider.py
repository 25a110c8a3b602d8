"""The shape of every style: a few pure functions over a state, held together by a machine.

A machine owns the state of one run and lends it to nobody. ``decide`` answers a command with the events it would cause
and changes nothing; ``evolve`` takes an event in and is the only place where the state changes; ``follow`` gives what
the state by itself demands next (an undo, the end) and is asked until it gives nothing; ``effects`` says what a
committed event asks of the world, ``mail`` what it tells other runs in the same commit, and ``outstanding`` gives the
effects of all that is open, which is all that recovery needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weft.core.commands import AnyCommand
from weft.core.effects import AnyEffect, OutgoingMail, PerformTask
from weft.core.events import AnyEvent
from weft.core.run.env import Env
from weft.core.run.state import State
from weft.core.run.style import RunStyle


class Machine(Protocol):
    """One run's decider."""

    @property
    def state(self) -> State: ...

    @property
    def style(self) -> RunStyle: ...

    def decide(self, command: AnyCommand, env: Env) -> Sequence[AnyEvent]:
        """What the command causes.

        Nothing, if it is late or known. Raises Refused or BadValue: rejected, nothing happened.
        """
        ...

    def rests(self) -> bool:
        """Whether ``follow`` gives nothing now, whatever its environment."""
        ...

    def follow(self, env: Env) -> Sequence[AnyEvent]:
        """What must happen next by itself. Raises MissingInputs."""
        ...

    def evolve(self, event: AnyEvent, *, at: int) -> None:
        """Take in the next event. Total: never raises on an event that ``decide`` can give in this state."""
        ...

    def effects(self, event: AnyEvent) -> Sequence[AnyEffect]:
        """What an event that was just taken in asks of the world."""
        ...

    def mail(self, event: AnyEvent) -> Sequence[OutgoingMail]:
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
