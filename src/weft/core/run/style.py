"""The interface of a style: what differs between code, graph and goal runs. The kernel does everything else.

A style has rows for the commands and events that only this style has. The kernel handles all others. It changes the
shared state, and notifies the style of entries that were opened or have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

import msgspec
from msgspec import Raw

from weft.core.commands import PatchRun, RetryRun, SetResult, StartRun
from weft.core.effects import AnyEffect, OutgoingMail
from weft.core.events import NULL, AnyEvent, ChildStarted, RunPatched
from weft.core.run.env import Env
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.state import Child, OpenTask, State, Status, Undo, WaitingMessage
from weft.errors import Failure

DecideRows = Mapping[type, Callable[[Any, Any, Env], Sequence[AnyEvent]]]
Evolve = Callable[[Any, Any], None]
EvolveRows = Mapping[type, tuple[Evolve | None, Evolve | None]]
EffectRows = Mapping[type, Callable[[Any, Any], Sequence[AnyEffect]]]
MailRows = Mapping[type, Callable[[Any, Any], Sequence[OutgoingMail]]]


class Ended(msgspec.Struct):
    """The end of an open entry: how it ended, and its result.

    ``late`` means that a wait timed out; ``stopped``, that the result is no longer needed, though the work may still
    run.
    """

    number: int
    how: Literal["task", "timer", "messages", "answer", "child", "late", "stopped"]
    output: Raw = NULL
    failure: Failure | None = None
    task: OpenTask | None = None
    waited: bool = False
    """Whether the task was waiting for its next attempt."""
    messages: Sequence[WaitingMessage] = ()
    child: Child | None = None
    status: str = ""
    """How the child ended."""


class JudgedPatch(msgspec.Struct, frozen=True):
    """What a patch would do to a run, and the event that does it, unless the plan has refusals.

    A style fills in only its own fields: the kernel adds those that every plan and every event has.
    """

    plan: PatchPlan
    event: RunPatched | None = None
    is_outdated: bool = False
    """It was prepared for an earlier state of the run, so it must be prepared again."""


class AnyRun(Protocol):
    """The part of a run that the kernel's rows use."""

    @property
    def state(self) -> State: ...

    @property
    def style(self) -> RunStyle: ...

    def location(self, number: int) -> str: ...

    def outstanding(self) -> Sequence[AnyEffect]: ...


class RunStyle(Protocol):
    """The style of one run, with its own state."""

    name: str
    has_code: bool
    """Whether code can react to a cancel or a deadline. A run without code ends at once."""
    retried_from: ClassVar[frozenset[Status]]
    """The statuses in which a run can be retried from a place."""
    repeats_undone: bool
    """Whether a retry can perform work again that was undone."""
    unanswered: str
    """The error message of a task that was not answered in time."""
    decide: ClassVar[DecideRows]
    """The kernel's rows, and rows for commands that only this style has."""
    evolve: ClassVar[EvolveRows]
    """For every event, the kernel's row and the style's own row."""
    effects: ClassVar[EffectRows]
    """The kernel's rows, and rows for events that only this style has."""
    mail: ClassVar[MailRows]
    """The kernel's rows, and rows for events that only this style has."""

    def begin(self, command: StartRun, env: Env) -> Sequence[AnyEvent]:
        """Return the first events of a run."""
        ...

    @property
    def consequences(self) -> Callable[[Sequence[AnyEvent], Env], Sequence[AnyEvent]] | None:
        """A function that extends the kernel's events with those that follow in the same decision, or None."""
        ...

    def opened(self, event: Any) -> None:
        """Handle a task, timer, wait, question or child that the event opened, with the number ``state.seq``."""
        ...

    def settled(self, ended: Ended) -> None:
        """Handle the end of an open entry. Unknown numbers are ignored."""
        ...

    def retry_later(self, number: int, due: int) -> None:
        """Handle a failed attempt of a task whose next attempt is due at ``due``."""
        ...

    @property
    def follow(self) -> Callable[[Env], Sequence[AnyEvent]] | None:
        """A function that returns the next events that need no command, while the run continues. Raises MissingInputs.

        None if the code drives the run. Then only the undo of dropped work needs no command.
        """
        ...

    def locate(self, number: int) -> str:
        """Return the location of an open entry, or an empty string if it is not known."""
        ...

    def question(self, name: int | str) -> int | None:
        """Return the number of the question with this name. Raises NotAllowed, AlreadyDecided."""
        ...

    def needs_log(self, command: PatchRun | RetryRun) -> bool:
        """Return whether a command is decided with the whole log of the run."""
        ...

    def retry(self, command: RetryRun, env: Env) -> Sequence[AnyEvent]:
        """Return the events of a retry. The run's status was checked before."""
        ...

    def set_ended(self, command: SetResult) -> Sequence[AnyEvent]:
        """Return the events that replace a recorded result. Raises NotFound if there is none that can be replaced."""
        ...

    def result_error(self, number: int, output: Raw, env: Env) -> str | None:
        """Return why an open entry cannot end with this output; None if it can, or if that is not known."""
        ...

    def judge_patch(self, command: PatchRun, env: Env) -> JudgedPatch:
        """Return what a patch does to the run as it stands, without changing it. Raises MissingInputs.

        Only styles with a row for ``PatchRun`` are asked. All reasons to refuse it are in the plan.
        """
        ...

    @property
    def review(self) -> Sequence[str]:
        """Who must agree to every patch of the run, as the definition says that it follows now."""
        ...

    def no_work_at(self, place: str) -> str:
        """Return why no work can be at this place, or was; empty if it can be."""
        ...

    def step_at(self, place: str) -> str:
        """Return the name of the registered step that works at a place; empty if there is none."""
        ...

    def named_places(self) -> Sequence[str]:
        """Return the places that the definition of the run names, in its order; none if only its code knows them."""
        ...

    def is_all_at(self, place: str) -> bool:
        """Return whether everything that moves in the run is at this place. Raises Refused if there is no such place.

        Only styles with a row for ``PatchRun`` are asked.
        """
        ...

    def cancel_open(self) -> Sequence[AnyEvent]:
        """Return the events that cancel everything open, before the run ends."""
        ...

    def undo(self, done: Undo, env: Env) -> Sequence[AnyEvent]:
        """Return the events that begin to undo a completed task."""
        ...

    def join_undo(self, dropped: list[Undo]) -> None:
        """Move the undos of dropped work to the undo stack of the run, because the run ends."""
        ...

    def start_for_child(self, event: ChildStarted) -> StartRun:
        """Return the first command of the child that the last event started."""
        ...
