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

from weft.core.commands import AnyCommand, Mailed
from weft.core.effects import AnyEffect
from weft.core.events import AnyEvent
from weft.core.state import State

SchemaCheck = Callable[[dict[str, Any], bytes], str | None]


class Env(msgspec.Struct, frozen=True):
    """Facts from outside that a decision may use."""

    now: int
    check: SchemaCheck
    """Whether JSON fits a JSON Schema: None, or what is wrong with it."""


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

    def follow(self) -> Sequence[AnyEvent]:
        """What must happen next by itself."""
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

    def snapshot(self) -> bytes:
        """The state as JSON."""
        ...
