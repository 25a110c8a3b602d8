"""A second fold of every log, made from what the store took and from nothing else.

What an engine has in memory must be this fold, byte for byte; what it was asked to do, less what was answered, must be
what the fold says is outstanding; and a token that is gone never comes back.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.core import events as e
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, EndRun, PerformTask, StopTask
from weft.core.graph.tokens import GraphState
from weft.core.machine import Machine
from weft.core.run.withheld import is_unconfirmed


class Shadow:
    """Of one run."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.gone: dict[int, int] = {}
        """Tasks that left, and with which event."""
        self.given_up: dict[int, tuple[int, int]] = {}
        """Tasks that left without an answer, and which attempt and delivery nobody waits for any more."""
        self._tasks: dict[int, tuple[int, int]] = {}
        self._timers: set[int] = set()
        self._live: set[str] = set()
        self._spent: set[str] = set()

    @property
    def seq(self) -> int:
        return self.machine.state.seq

    @property
    def unconfirmed(self) -> list[int]:
        """Tasks that may have been performed before, and that people are asked about."""
        state = self.machine.state
        return [number for number in state.parked if is_unconfirmed(state, number)]

    def take(self, event: e.AnyEvent, at: int) -> Iterator[str]:
        """The next event of the log; what is wrong with it."""
        state = self.machine.state
        before = {number: (task.attempt, task.delivery) for number, task in state.tasks.items()}
        self.machine.evolve(event, at=at)
        for task, hand_out in before.items():
            if task not in state.tasks:
                self.gone[task] = state.seq
                if not isinstance(event, e.TaskSucceeded | e.TaskFailed):
                    self.given_up[task] = hand_out
        if isinstance(event, e.WorkResumed):
            self.gone.pop(event.task, None)  # between two attempts it is no task of the run
            self.given_up.pop(event.task, None)
        self._answered(event)
        for effect in self.machine.effects(event):
            self._issued(effect)
        if isinstance(state, GraphState):
            yield from self._tokens(state)

    def _answered(self, event: e.AnyEvent) -> None:
        match event:
            case e.TaskSucceeded(task=task) | e.TaskFailed(task=task) | e.TaskLost(task=task):
                self._tasks.pop(task, None)
            case e.TimerFired(timer=entry) | e.WaitTimedOut(wait=entry):
                self._timers.discard(entry)

    def _issued(self, effect: AnyEffect) -> None:
        match effect:
            case PerformTask(task=task):
                self._tasks[task] = (effect.attempt, effect.delivery)
            case ArmTimer(entry=entry):
                self._timers.add(entry)
            case StopTask(task=task):
                self._tasks.pop(task, None)
                self._timers.discard(task)
            case DisarmTimer(entry=entry):
                self._timers.discard(entry)
            case EndRun():
                self._tasks.clear()
                self._timers.clear()

    def _tokens(self, state: GraphState) -> Iterator[str]:
        now = state.tokens.keys()
        if not self._spent.isdisjoint(now):
            yield f"tokens came back: {self._spent & now}"
        self._spent |= self._live - now
        self._live = set(now)

    def unbalanced(self) -> Iterator[str]:
        """Where the books of what was asked for and answered differ from what is outstanding."""
        found = self.machine.outstanding()
        timers = {effect.entry for effect in found if isinstance(effect, ArmTimer)}
        # A timer may stay armed for what nobody waits for any more: it then decides nothing.
        armed = {entry for entry in self._timers if self.machine.due_of(entry)}
        if timers != armed:
            yield f"timers {sorted(timers)} are outstanding, {sorted(armed)} were armed"
        if self.machine.state.status == "paused":
            return  # what was handed out before goes on; nothing is handed out now
        tasks = {effect.task: (effect.attempt, effect.delivery) for effect in found if isinstance(effect, PerformTask)}
        if tasks != self._tasks:
            yield f"tasks {tasks} are outstanding, {self._tasks} were handed out"
