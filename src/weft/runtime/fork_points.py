"""Find the point of a fork in a log: before or after a place, or before what failed. Also what the log has results for.

A log is folded once. Each event that opens something is a *visit* of a place.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core import values
from weft.core.machine import Machine
from weft.core.plurals import pluralize
from weft.core.run.places import is_at
from weft.errors import NotFound, Refused
from weft.ports.store import StoredEvent
from weft.steps.failures import text_of


class Visit(msgspec.Struct):
    """One time that a run came to a place: the event that began it, and the event that ended it (0: none)."""

    place: str
    began: int
    ended: int = 0
    failed: bool = False
    step: str = ""
    """The step of its task, with the digest of the input, the effect and the result, if it has a task."""
    digest: str = ""
    effect: e.Effect = "idempotent"
    output: Raw | None = None
    is_undone: bool = False
    rolled_back: int = 0
    """The event that ended its undo, if that was part of the end of the run (0: none)."""


class LogTrail:
    """The visits of a log, in the order in which they began."""

    def __init__(self, run_id: str, machine: Machine, stored: Sequence[StoredEvent]) -> None:
        self.run_id = run_id
        self.visits: dict[int, Visit] = {}
        self.ending = 0
        """The event that began the last failed end of the run; 0 if it has not failed."""
        self.child_ends: dict[int, e.ChildEnded] = {}
        self._machine = machine
        self._undos: dict[int, int] = {}
        self._reversed: set[int] = set()
        """Undos of work that the run no longer needed."""
        for one in stored:
            try:
                event = e.decode(one.body)
                machine.evolve(event, at=one.at)
            except Exception as error:
                raise Refused(
                    f"{run_id} cannot be forked: event {one.seq} cannot be read: {text_of(error)}.",
                    code="fork.unreadable",
                ) from error
            self._note_event(one.seq, event)

    def _note_event(self, seq: int, event: e.AnyEvent) -> None:
        place = self._machine.style.locate(seq)
        if isinstance(event, e.UndoScheduled):
            self._undos[seq] = event.of
            if self._machine.state.tasks[seq].dropped:
                self._reversed.add(seq)
        elif place or isinstance(event, e.StepStarted):
            self._begin_visit(seq, place or getattr(event, "step", ""))
        for number in _ended_by(event):
            self._end_visit(number, seq, event)
        match event:
            case e.ChildEnded():
                self.child_ends[event.child] = event
            case e.RunRetried():
                self.ending = 0
            case e.RunEnding(failure=failure) if failure is not None:
                self.ending = seq
            case e.RunFailedEvent() | e.FailureRaised(taker=""):
                self.ending = self.ending or seq

    def _begin_visit(self, seq: int, place: str) -> None:
        visit = self.visits[seq] = Visit(place, seq)
        state = self._machine.state
        task = state.tasks.get(seq)
        if task is not None:
            visit.step, visit.effect = task.step, task.policy.effect
            visit.digest = values.digest(bytes(task.input))
        elif not any(seq in table for table in (state.timers, state.waits, state.asks, state.children)):
            visit.ended = seq

    def _end_visit(self, number: int, seq: int, event: e.AnyEvent) -> None:
        undone = self._undos.get(number)
        if undone is not None:
            if isinstance(event, e.TaskSucceeded) and undone in self.visits:
                self.visits[undone].is_undone = True
                self.visits[undone].rolled_back = 0 if number in self._reversed else seq
            return
        visit = self.visits.get(number)
        if visit is None:
            return
        visit.ended = seq
        visit.failed = isinstance(event, e.TaskFailed | e.WaitTimedOut) or (
            isinstance(event, e.ChildEnded) and event.status != "completed"
        )
        if isinstance(event, e.TaskSucceeded):
            visit.output = event.output

    def steps(self) -> list[str]:
        """Return the places at which the run came to a step."""
        return [visit.place for visit in self.visits.values() if visit.step]

    def at(self, place: str, number: int | None) -> Visit:
        """Return a visit of a place: the one with this number, counted from 1, or the last. Raises NotFound."""
        exact = [visit for visit in self.visits.values() if visit.place == place]
        found = exact or [visit for visit in self.visits.values() if is_at(visit.place, place)]
        if not found:
            raise NotFound(
                f"{self.run_id} never came to {place[:60]!r}.",
                hint=f"To see the places it came to: weft show {self.run_id}",
                code="fork.no_place",
            )
        if number is not None and not 1 <= number <= len(found):
            raise NotFound(
                f"{self.run_id} came to {place[:60]!r} {pluralize(len(found), 'time')}, so there is no visit {number}.",
                code="fork.no_place",
            )
        return found[-1 if number is None else number - 1]

    def before(self, place: str, number: int | None) -> int:
        """Return the last event before a visit of a place."""
        return self.at(place, number).began - 1

    def after(self, place: str, number: int | None) -> int:
        """Return the event that ended a visit of a place. Raises Refused if it has not ended."""
        visit = self.at(place, number)
        if not visit.ended:
            raise Refused(f"{self.run_id} has not come past {place[:60]!r} yet.", code="fork.no_place")
        return visit.ended

    def before_failure(self) -> int:
        """Return the last event before the work began whose failure ended the run. Raises Refused."""
        if not self.ending:
            raise Refused(
                f"{self.run_id} has not failed.", hint="Name a point: --at, --before or --after.", code="fork.no_place"
            )
        failed = [visit for visit in self.visits.values() if visit.failed and visit.ended < self.ending]
        return max(failed, key=lambda visit: visit.ended).began - 1 if failed else self.ending - 1

    def rolled_back(self, point: int) -> list[Visit]:
        """Return the work before a point that the run has undone after it, because it failed or was cancelled."""
        return [visit for visit in self.visits.values() if visit.began <= point < visit.rolled_back]

    def results(self, point: int, effects: e.Effects) -> list[e.KnownResult]:
        """Return the results that a fork may need: those of work that it may not, or need not, perform again."""
        uses: dict[tuple[str, str], int] = {}
        found = []
        for visit in self.visits.values():
            use = 0
            if visit.step and visit.began > point:
                key = (visit.step, visit.digest)
                use = uses[key] = uses.get(key, 0) + 1
            if visit.output is None or visit.is_undone or not _is_needed(visit, point, effects):
                continue
            once = visit.effect == "irreversible"
            found.append(e.KnownResult(visit.place, visit.step, visit.digest, use, visit.output, once))
        return found


def _is_needed(visit: Visit, point: int, effects: e.Effects) -> bool:
    if effects != "perform" or visit.effect == "irreversible":
        return True
    return visit.effect == "pure" and visit.ended > point


def _ended_by(event: e.AnyEvent) -> Sequence[int]:
    match event:
        case e.TaskSucceeded():
            return (event.task,)
        case e.TaskFailed(retry_at=0):
            return (event.task,)
        case e.TimerFired():
            return (event.timer,)
        case e.MessagesTaken() | e.WaitTimedOut():
            return (event.wait,)
        case e.AskAnswered(decided=True):
            return (event.ask,)
        case e.ChildEnded():
            return (event.child,)
        case e.EntryCancelled():
            return (event.entry,)
    return ()
