"""What a style of runs supplies. Everything else is the kernel's.

A style has rows of its own for the commands and events that only it has. For what every run has, the kernel decides and
changes the shared state, and tells the style what was opened, what has ended and what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

import msgspec
from msgspec import Raw

from weft.core.commands import RetryRun, StartRun
from weft.core.effects import AnyEffect
from weft.core.events import NULL, AnyEvent, ChildStarted
from weft.core.run.env import Env
from weft.core.run.state import Child, OpenTask, State, Undo, WaitingMessage
from weft.errors import Failure

DecideRows = Mapping[type, Callable[[Any, Any, Env], Sequence[AnyEvent]]]
Evolve = Callable[[Any, Any], None]
EvolveRows = Mapping[type, tuple[Evolve | None, Evolve | None]]
EffectRows = Mapping[type, Callable[[Any, Any], Sequence[AnyEffect]]]


class Ended(msgspec.Struct):
    """Something open has ended: how, and with what.

    ``late``: a wait passed its time. ``stopped``: nobody waits for it any more; it may still be under way.
    """

    number: int
    how: Literal["task", "timer", "messages", "answer", "child", "late", "stopped"]
    output: Raw = NULL
    failure: Failure | None = None
    task: OpenTask | None = None
    waited: bool = False
    """The task was waiting for its next attempt."""
    messages: Sequence[WaitingMessage] = ()
    child: Child | None = None
    status: str = ""
    """How the child ended."""


class AnyRun(Protocol):
    """What the rows of the kernel get."""

    @property
    def state(self) -> State: ...

    @property
    def style(self) -> RunStyle: ...

    def location(self, number: int) -> str: ...

    def outstanding(self) -> Sequence[AnyEffect]: ...


class RunStyle(Protocol):
    """One run's style, with the state that is its own."""

    name: str
    has_code: bool
    """There is code to be told of a cancel or a deadline; a run without code ends at once."""
    repeats_undone: bool
    """A retry may go on from work that was undone."""
    unanswered: str
    """The message of a task whose answer did not come in time."""
    decide: ClassVar[DecideRows]
    """The kernel's rows, and those for commands that only this style knows."""
    evolve: ClassVar[EvolveRows]
    """For every event the kernel's row, and what the event changes in the style's own state."""
    effects: ClassVar[EffectRows]
    """The kernel's rows, and those for events that only this style has."""

    def begin(self, command: StartRun, env: Env) -> Sequence[AnyEvent]:
        """The first events of a run."""
        ...

    @property
    def consequences(self) -> Callable[[Sequence[AnyEvent], Env], Sequence[AnyEvent]] | None:
        """Adds to what the kernel has decided what follows from it in the same decision. None: nothing does."""
        ...

    def opened(self, event: Any) -> None:
        """A task, timer, wait, question or child was opened by this event, under the state's number."""
        ...

    def settled(self, ended: Ended) -> None:
        """Something open has ended. A number that the style does not know is ignored."""
        ...

    def retry_later(self, number: int, due: int) -> None:
        """An attempt of a task failed, and the next one is due then."""
        ...

    @property
    def follow(self) -> Callable[[Env], Sequence[AnyEvent]] | None:
        """What must happen next by itself in a run that goes on. Raises MissingInputs.

        None: its code goes on by itself, and nothing follows but the undo of what was dropped.
        """
        ...

    def locate(self, number: int) -> str:
        """Where something open stands, if it is no task; empty if that is not known."""
        ...

    def question(self, name: int | str) -> int | None:
        """The number of the question that a name means. Raises NotAllowed, AlreadyDecided."""
        ...

    def retry(self, command: RetryRun) -> Sequence[AnyEvent]:
        """The events of a retry that the run's status allows."""
        ...

    def let_go(self) -> Sequence[AnyEvent]:
        """The events that stop what is open, before the run ends."""
        ...

    def undo(self, done: Undo, env: Env) -> Sequence[AnyEvent]:
        """The events that begin to undo a completed task."""
        ...

    def join_undo(self, dropped: list[Undo]) -> None:
        """The run ends: put what was dropped before and is not undone yet on its stack."""
        ...

    def child_start(self, event: ChildStarted) -> StartRun:
        """The first command of a child run that the last event started."""
        ...
