"""The interface of a machine, which owns the state of one run and decides what happens next. Pure.

- ``decide`` returns the events that a command causes. It changes nothing.
- ``evolve`` applies an event. Only ``evolve`` and its fast paths change the state.
- ``follow`` returns the events that the state itself requires next, such as an undo or the end of the run. It is called
  until it returns nothing.
- ``take_success`` does all of this at once for a task that succeeds in a run without code, in the common case.
- ``fold`` applies an event of a log that is loaded, in the common case faster than ``evolve``.
- ``effects`` returns the work that a committed event requires.
- ``mail`` returns the commands to other runs that go into the same commit.
- ``outstanding`` returns the effects of everything that is open. Recovery needs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weft.core.commands import AnyCommand, ReportTaskSucceeded
from weft.core.effects import AnyEffect, OutgoingMail, PerformTask
from weft.core.events import AnyEvent
from weft.core.run.env import Env
from weft.core.run.plain import Continuation
from weft.core.run.state import State
from weft.core.run.style import RunStyle


class Machine(Protocol):
    """The state of one run, and the functions that decide and change it."""

    @property
    def state(self) -> State: ...

    @property
    def style(self) -> RunStyle: ...

    def decide(self, command: AnyCommand, env: Env) -> Sequence[AnyEvent]:
        """Return the events that a command causes.

        A late or repeated command causes none. Raises Refused or BadValue if the command is rejected.
        """
        ...

    def tries(self) -> bool:
        """Return whether a patch that waits is to be judged again."""
        ...

    def rests(self) -> bool:
        """Return whether ``follow`` has no events now, whatever the environment."""
        ...

    def follow(self, env: Env) -> Sequence[AnyEvent]:
        """Return the events that must happen next without a command. Raises MissingInputs."""
        ...

    def take_success(self, report: ReportTaskSucceeded, env: Env) -> Continuation | None:
        """Record the success of a task and what follows, by the fast path. Returns None if that does not apply.

        The events, the state and the effects are the same as without it.
        """
        ...

    def evolve(self, event: AnyEvent, *, at: int) -> None:
        """Apply the next event. Never raises for an event that ``decide`` can return in this state."""
        ...

    def fold(self, event: AnyEvent, *, at: int) -> None:
        """Apply the next event of a log. The same as ``evolve``, in the common case faster."""
        ...

    def effects(self, event: AnyEvent) -> Sequence[AnyEffect]:
        """Return the effects of the event that was just applied."""
        ...

    def mail(self, event: AnyEvent) -> Sequence[OutgoingMail]:
        """Return the mail to other runs that the event just applied causes."""
        ...

    def outstanding(self) -> Sequence[AnyEffect]:
        """Return the effects of everything that is open."""
        ...

    def perform(self, number: int) -> PerformTask:
        """Return the effect that dispatches an open task."""
        ...

    def due_of(self, number: int) -> int:
        """Return when an open entry is due (0: never). Entry 0 is the run's own deadline."""
        ...

    def location(self, number: int) -> str:
        """Return the readable location of an open entry."""
        ...

    def snapshot(self) -> bytes:
        """Return the state as JSON."""
        ...
