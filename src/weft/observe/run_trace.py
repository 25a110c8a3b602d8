"""The trace of a run: what it did at each place, in the order of its log. Two traces can be compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from weft.core import events as e
from weft.core.machine import Machine
from weft.core.run.places import is_at
from weft.errors import Failure
from weft.observe.style_views import StyleViews
from weft.ports.store import StoredEvent

_KINDS: dict[type, str] = {
    e.TimerSet: "sleep",
    e.MessageAwaited: "receive",
    e.AskOpened: "ask",
    e.ChildStarted: "child",
    e.AttributesSet: "set",
    e.RaceDecided: "race",
    e.LoopTurned: "loop",
    e.LoopFinished: "loop",
    e.DeadlineSet: "deadline",
}


_OF_ITS_OWN = ("now", "uuid")
"""Values that are never the same in two runs."""


class TraceItem(msgspec.Struct):
    """What a run did at one place. Values are as the log has them."""

    place: str
    kind: str
    began: int
    """When it began, and below when it ended: in milliseconds since 1970."""
    ended: int | None = None
    input: bytes = b"null"
    outcome: str = "open"
    value: bytes = b"null"
    attempts: int = 1
    by: list[str] = []
    conditions: dict[str, Any] = {}
    """By edge, the verdict of its condition and what the condition saw."""

    @property
    def took_ms(self) -> int | None:
        return None if self.ended is None else self.ended - self.began


class RunTrace:
    """The items of a run, by place, in the order in which they began."""

    def __init__(self, machine: Machine, stored: Sequence[StoredEvent], views: StyleViews[Any]) -> None:
        self._machine = machine
        self._views = views
        self._numbers: dict[int, str] = {}
        self._tokens: dict[str, str] = {}
        self._visits: dict[str, int] = {}
        self.items: dict[str, TraceItem] = {}
        self.seq = len(stored)
        for one in stored:
            event = e.decode(one.body)
            machine.evolve(event, at=one.at)
            self._note(one.seq, event, one.at)
        self._end()

    def _note(self, seq: int, event: e.AnyEvent, at: int) -> None:
        match event:
            case e.RunRetried(dropped=dropped) | e.EntriesDropped(dropped=dropped):
                for number in dropped:
                    self.items.pop(self._numbers.pop(number, ""), None)
                return
            case e.NodeRouted() if event.token and event.verdicts:
                self._routed(event, at)
            case e.RunEdited():
                self._edited(event)
        place = self._machine.style.locate(seq)
        if place and not isinstance(event, e.UndoScheduled):
            self._begin(seq, place, event, at)
        self._settle(event, at)

    def _begin(self, seq: int, place: str, event: e.AnyEvent, at: int) -> None:
        state = self._machine.state
        task = state.tasks.get(seq) or state.parked.get(seq)
        kind = task.step if task is not None else _KINDS.get(type(event), getattr(event, "of", "value"))
        item = self._item(self._views.aligned_place(self._machine, seq, place), kind, at)
        self._numbers[seq] = item.place
        self._tokens[place] = item.place
        item.input = bytes(task.input) if task is not None else _first(event, "about", "input")
        if task is None and seq not in {**state.timers, **state.waits, **state.asks, **state.children}:
            item.ended, item.outcome = at, "done"
            item.value = b"null" if kind in _OF_ITS_OWN else _first(event, "value", "output", "winner")

    def _item(self, place: str, kind: str, at: int) -> TraceItem:
        """Add an item. A place that comes again is numbered."""
        visit = self._visits[place] = self._visits.get(place, 0) + 1
        while visit > 1 and place not in self.items:
            visit -= 1  # the earlier one was dropped
        name = place if visit == 1 else f"{place} ({visit})"
        item = self.items[name] = TraceItem(name, kind, at)
        return item

    def _routed(self, event: e.NodeRouted, at: int) -> None:
        known = self.items.get(self._tokens.get(f"{event.node}/{event.token}", ""))
        item = known or self._item(event.node, "route", at)
        if known is None:
            item.outcome, item.ended = "done", at
        item.conditions = {one.edge: {"taken": one.taken, "seen": one.seen} for one in event.verdicts}

    def _edited(self, event: e.RunEdited) -> None:
        for place, value in event.results.items():
            for item in self.items.values():
                if is_at(item.place, place) and item.outcome in ("done", "failed"):
                    item.outcome, item.value = "done", bytes(value)

    def _settle(self, event: e.AnyEvent, at: int) -> None:
        match event:
            case e.TaskSucceeded():
                self._close(event.task, at, "done", bytes(event.output), event.attempt)
            case e.TaskFailed() if not event.retry_at:
                self._close(event.task, at, "failed", self._failure(event.failure), event.attempt)
            case e.TimerFired():
                self._close(event.timer, at, "done")
            case e.MessagesTaken():
                self._close(event.wait, at, "done", msgspec.json.encode(len(event.ids)))
            case e.WaitTimedOut():
                self._close(event.wait, at, "late")
            case e.AskAnswered() if event.decided:
                item = self.items.get(self._numbers.get(event.ask, ""))
                if item is not None and item.outcome == "open":
                    item.by = [event.by] if event.by else []
                self._close(event.ask, at, "approved" if event.approved else "rejected", bytes(event.form))
            case e.ChildEnded():
                failed = self._failure(event.failure) if event.failure is not None else b"null"
                self._close(event.child, at, event.status, failed if event.failure else bytes(event.output))
            case e.EntryCancelled():
                self._close(event.entry, at, "cancelled")

    def _close(self, number: int, at: int, outcome: str, value: bytes = b"null", attempts: int = 1) -> None:
        item = self.items.get(self._numbers.get(number, ""))
        if item is not None and item.outcome == "open":
            item.outcome, item.value, item.ended, item.attempts = outcome, value, at, attempts

    def _failure(self, failure: Failure) -> bytes:
        """Return a failure as JSON. The run's own id is not compared."""
        own = rf"(?<![\w-]){re.escape(self._machine.state.run_id)}(?![\w-])"
        return msgspec.json.encode({"type": failure.type, "message": re.sub(own, "the run", failure.message)})

    def _end(self) -> None:
        """Add the facts of the run, and how it ended."""
        state = self._machine.state
        for name, raw in self._views.facts(self._machine).items():
            self.items[f"fact {name}"] = TraceItem(
                f"fact {name}", "fact", state.at, state.at, outcome="done", value=raw
            )
        end = TraceItem("the run", "run", state.started_at, state.at if state.over else None, bytes(state.input))
        end.outcome = state.status
        end.value = self._failure(state.failure) if state.failure is not None else bytes(state.output)
        self.run = end


def _first(event: e.AnyEvent, *fields: str) -> bytes:
    """Return the first of these fields that the event has and that is not null, as JSON."""
    for field in fields:
        found = getattr(event, field, None)
        value = bytes(found) if isinstance(found, msgspec.Raw) else msgspec.json.encode(found)
        if value not in (b"", b"null"):
            return value
    return b"null"
