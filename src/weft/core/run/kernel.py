"""The machine of every run. It has one table each for decide, evolve, effects and mail, and a style. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.commands import AnyCommand, ReportTaskSucceeded
from weft.core.effects import AnyEffect, OutgoingMail, PerformTask
from weft.core.events import AnyEvent
from weft.core.run import asked_patches, effects, lifecycle, timers, withheld
from weft.core.run.env import Env
from weft.core.run.mail import stop_child
from weft.core.run.plain import Continuation
from weft.core.run.state import State
from weft.core.run.statuses import LIVE, RESTING, unknown_command
from weft.core.run.style import RunStyle
from weft.core.run.undo import follow_dropped


class Kernel:
    """The state and style of one run."""

    __slots__ = ("_consequences", "_decide", "_effects", "_evolve", "_follow", "_mail", "state", "style", "tried")

    def __init__(self, state: State, style: RunStyle) -> None:
        self.state = state
        self.style: Any = style
        self._decide = style.decide
        self._consequences = style.consequences
        self._evolve = style.evolve
        self._effects = style.effects
        self._mail = style.mail
        self._follow = style.follow
        self.tried = -1
        """The number of the last event after which the patches that wait were judged."""

    def decide(self, command: AnyCommand, env: Env) -> Sequence[AnyEvent]:
        """Return the events that a command causes. Raises Refused or BadValue if the command is rejected."""
        decide = self._decide.get(type(command))
        if decide is None:
            raise unknown_command(self.state.run_id, self.style.name, command)
        events = decide(self, command, env)
        extend = self._consequences
        if extend is not None and events:
            events = extend(events, env)
        return events if not self.state.asked else asked_patches.drop_before_end(self.state, events)

    def rests(self) -> bool:
        """Return whether ``follow`` has no events now, whatever the environment."""
        state = self.state
        if state.asked and self.tries():
            return False
        return state.status in RESTING or not (state.ended or self._follow or state.reversals or state.withheld)

    def tries(self) -> bool:
        """Return whether a patch that waits is to be judged again."""
        state = self.state
        return bool(state.asked) and self.tried != state.seq and (state.status in LIVE or state.status == "failed")

    def follow(self, env: Env) -> Sequence[AnyEvent]:
        """Return the events that must happen next without a command. Raises MissingInputs."""
        if not self.state.asked:
            return self._follow_run(env)
        tried = asked_patches.follow_patches(self, env) if self.tries() else ()
        return tried or asked_patches.drop_before_end(self.state, self._follow_run(env))

    def _follow_run(self, env: Env) -> Sequence[AnyEvent]:
        state = self.state
        if state.status in RESTING or not state.started:
            return ()
        if state.withheld and (decided := withheld.follow_withheld(self, env)):
            return decided
        if state.ended:
            return () if state.parked else lifecycle.follow_end(self, env)
        if self._follow is not None:
            events = self._follow(env)
            return events if state.fork is None else withheld.without_children(self, events)
        return follow_dropped(self, env) if state.reversals else ()

    def take_success(self, report: ReportTaskSucceeded, env: Env) -> Continuation | None:
        """Record the success of a task and what follows, by the fast path of the style.

        Returns None if it does not apply.
        """
        return None

    def evolve(self, event: AnyEvent, *, at: int) -> None:
        """Apply the next event."""
        state = self.state
        state.seq += 1
        state.at = at
        if state.gone or state.gone_children:
            state.gone, state.gone_children = [], []
        shared, own = self._evolve[type(event)]
        if shared is not None:
            shared(self, event)
        if own is not None:
            own(self.style, event)

    def fold(self, event: AnyEvent, *, at: int) -> None:
        """Apply the next event of a log, by the fast path of the style if it has one."""
        self.evolve(event, at=at)

    def effects(self, event: AnyEvent) -> Sequence[AnyEffect]:
        """Return the effects of the event that was just applied."""
        make = self._effects.get(type(event))
        caused = () if make is None else make(self, event)
        return [*effects.stop_removed(self.state), *caused] if self.state.gone else caused

    def mail(self, event: AnyEvent) -> Sequence[OutgoingMail]:
        """Return the mail to other runs that the event just applied causes."""
        make = self._mail.get(type(event))
        caused = () if make is None else make(self, event)
        gone = self.state.gone_children
        return [*caused, *(stop_child(self, uid) for uid in gone)] if gone else caused

    def outstanding(self) -> Sequence[AnyEffect]:
        """Return the effects of everything that is open."""
        return effects.outstanding(self)

    def perform(self, number: int) -> PerformTask:
        """Return the effect that dispatches an open task."""
        return effects.perform_open_task(self, number)

    def due_of(self, number: int) -> int:
        """Return when an open entry is due (0: never). Entry 0 is the run's own deadline."""
        return timers.entry_due(self.state, number)

    def location(self, number: int) -> str:
        """Return the readable location of an open entry. An undo has the location of its task, with ``!undo``."""
        task = self.state.tasks.get(number) or self.state.parked.get(number)
        if task is not None:
            if task.undo_of:
                return f"{task.undoes or f'!{task.undo_of}'}!undo"
            if task.place:
                return task.place
        if number in self.state.asked:
            return f"{asked_patches.PLACE}{number}"
        return self.style.locate(number) or f"!{number}"
