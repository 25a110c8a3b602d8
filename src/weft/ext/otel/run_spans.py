"""Spans of runs, waits and commits, derived from what a host commits.

A span is sent when the event that ends it is durable, by the host that committed that event, so it is sent once. Its
id derives from the run and the entry. What a host had not sent yet when it died is missing; the spans of the run, and
everything that ends later, are sent by the host that continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time_ns
from typing import Any, NamedTuple

from opentelemetry.trace import SpanKind

from weft.core import events as e
from weft.core.ids import RunUid, Seq
from weft.core.trace_context import (
    TraceParent,
    attempt_span,
    entry_span,
    parse_traceparent,
    run_span,
    trace_of,
)
from weft.ext.otel.agent_spans import agent_of
from weft.ext.otel.span_records import CommitRecord, EndedSpan, RunRecord, TracedRun
from weft.ext.otel.span_sink import SpanSink
from weft.ext.otel.wire import Attributes, LinkParts
from weft.ports.store import OVER_STATUSES, StoredEvent
from weft.runtime.run.actor import Actor
from weft.runtime.run.draft import Draft

NS_PER_MS = 1_000_000
WAITS_MAX = 50_000
_KIND = b'{"kind":"'
_PLAIN = (b'{"kind":"task_scheduled"', b'{"kind":"task_succeeded"', b'{"kind":"run_started"')
"""The events of nearly every step, whose spans come from the host that performs it, and of every start."""
_BEGINS = {"timer_set": "sleep", "message_awaited": "receive", "ask_opened": "ask", "child_started": "child"}
_ENDS = {
    "timer_fired": "timer",
    "messages_taken": "wait",
    "wait_timed_out": "wait",
    "ask_answered": "ask",
    "child_ended": "child",
    "entry_cancelled": "entry",
}
_OVER = frozenset({"run_completed", "run_failed", "run_cancelled"})
ReadEvent = Callable[[RunUid, Seq, Callable[[StoredEvent], None]], None]
"""Reads one event of a log in the background, and calls back with it."""


class _Wait(NamedTuple):
    kind: str
    name: str
    start: int


class _EndedWait(NamedTuple):
    uid: RunUid
    run: TracedRun
    entry: int
    outcome: str
    end: int


class RunSpans:
    """Turns the commits of a host into spans."""

    def __init__(self, sink: SpanSink, read_event: ReadEvent) -> None:
        self._sink = sink
        self._put = sink.put
        self._read_event = read_event
        self._waits: dict[tuple[RunUid, int], _Wait] = {}
        self._batch = (0, 0, 0)
        """When the last commit began and ended, and how many runs it was of."""
        self.offered: dict[tuple[RunUid, int], tuple[int, int, int, str, str]] = {}
        """Tasks that other processes perform: attempt, delivery, since when, step and place."""

    def on_batch(self, drafts: Sequence[Draft], seconds: float) -> None:
        """Note how long a commit took. The runs are told afterwards."""
        now = time_ns()
        self._batch = (now - int(seconds * 1e9), now, len(drafts))

    def on_commit(self, actor: Actor, draft: Draft) -> None:
        """Send the spans that these events end."""
        run = self._sink.known.get(actor.uid)
        if run is None:
            state = actor.machine.state
            run = self._sink.run(actor.uid, state.run_id, state.workflow, root=state.root, trace=state.trace)
        if not run.is_sampled:
            if draft.status in OVER_STATUSES:
                self._sink.forget(actor.uid)
            return
        events = draft.events
        self._put(CommitRecord(run, events[-1].seq, len(events), self._batch))
        for event in events:
            if not event.body.startswith(_PLAIN) or self.offered:
                self._take(actor, run, event)

    def _take(self, actor: Actor, run: TracedRun, stored: StoredEvent) -> None:
        body = stored.body
        kind = body[len(_KIND) : body.index(b'"', len(_KIND))].decode()
        if kind in _BEGINS:
            self._begin_wait(actor.uid, stored.seq, _wait_of(kind, stored))
        elif kind in _ENDS:
            self._end_wait(actor, run, stored, kind)
        elif kind in _OVER:
            self._end_run(actor, run, stored)
        elif kind == "task_lost":
            self._lose(actor, run, stored)
        elif kind in ("task_succeeded", "task_failed"):
            self._end_offered(actor.uid, run, stored)

    # --- waits ----------------------------------------------------------------------------------------------------

    def _begin_wait(self, uid: RunUid, seq: int, wait: _Wait) -> None:
        self._waits[uid, seq] = wait
        if len(self._waits) > WAITS_MAX:
            del self._waits[next(iter(self._waits))]

    def _end_wait(self, actor: Actor, run: TracedRun, stored: StoredEvent, kind: str) -> None:
        event: Any = e.decode(stored.body)
        if kind == "ask_answered" and not event.decided:
            return
        entry = int(getattr(event, _ENDS[kind]))
        outcome = getattr(event, "status", "") or _OUTCOMES.get(kind, "")
        wait = self._waits.pop((actor.uid, entry), None)
        ended = _EndedWait(actor.uid, run, entry, outcome, stored.at * NS_PER_MS)
        if wait is not None:
            self._send_wait(ended, wait)
        elif kind != "entry_cancelled":
            # It began on another host, or before this run left memory.
            self._read_event(actor.uid, Seq(entry), lambda began: self._send_wait(ended, _wait_of_event(began)))

    def _send_wait(self, ended: _EndedWait, wait: _Wait) -> None:
        uid, run, entry, outcome, end = ended
        error = f"the child is {outcome}" if outcome == "failed" else None
        attributes = (("weft.wait", wait.kind), ("weft.outcome", outcome))
        name = f"{wait.kind} {wait.name}".rstrip()
        span = EndedSpan(name, entry_span(uid, entry), run.span_id, wait.start, end, attributes, error=error)
        self._sink.emit(run, span)

    # --- runs and tasks -------------------------------------------------------------------------------------------

    def _end_run(self, actor: Actor, run: TracedRun, stored: StoredEvent) -> None:
        state = actor.machine.state
        failure = state.failure
        agent = agent_of(actor)
        start, end = state.started_at * NS_PER_MS, stored.at * NS_PER_MS
        if state.over and not (failure or agent or state.trace or state.parent or state.schedule or state.forked_from):
            self._sink.forget(actor.uid)
            self._put(RunRecord(run, state.status, stored.seq, start, end))
            return
        parent, kind, links = 0, SpanKind.INTERNAL, list[LinkParts]()
        if state.parent is not None:
            entry = state.parent.entry
            parent = entry_span(state.parent.uid, entry) if entry else run_span(state.parent.uid)
        elif state.trace and (caller := parse_traceparent(state.trace)) is not None:
            parent, kind = caller.span_id, SpanKind.SERVER
        if state.schedule:
            attributes: Attributes = (("weft.link", "schedule"),)
            links.append((trace_of(state.schedule, "", ""), run_span(state.schedule), attributes))
        if state.forked_from is not None:
            original = _span_of_original(state.forked_from)
            attributes = (("weft.link", "fork"), ("weft.original", state.forked_from.run))
            links.append((original.trace_id, original.span_id, attributes))
        status = state.status if state.over else "retried"
        attributes = (("weft.run.status", status), ("weft.events", int(stored.seq)))
        error = None if failure is None or status == "completed" else failure.brief()
        if agent:
            attributes += (("gen_ai.operation.name", "invoke_agent"), ("gen_ai.agent.name", agent))
        name = f"invoke_agent {agent}" if agent else state.workflow
        span = EndedSpan(name, run.span_id, parent, start, end, attributes, kind, error, links, has_run=True)
        self._sink.forget(actor.uid)
        if state.forked_from is None:
            self._sink.emit(run, span)
        else:
            # The log begins with the past of the original. The fork begins with the event after that.
            own = Seq(state.forked_from.seq + 1)
            self._read_event(
                actor.uid, own, lambda first: self._sink.emit(run, span._replace(start=first.at * NS_PER_MS))
            )

    def _lose(self, actor: Actor, run: TracedRun, stored: StoredEvent) -> None:
        """Send the span of a delivery whose host died. Only the host that takes over can say so."""
        event: Any = e.decode(stored.body)
        task = actor.machine.state.tasks.get(event.task)
        if task is None:
            return
        since = (task.since if task.attempt == 1 else stored.at) * NS_PER_MS
        number = attempt_span(actor.uid, event.task, task.attempt, event.delivery - 1)
        attributes = (
            ("weft.step", task.step),
            ("weft.attempt", task.attempt),
            ("weft.delivery", event.delivery - 1),
        )
        error = "the process that performed it was lost"
        span = EndedSpan(task.step, number, run.span_id, since, stored.at * NS_PER_MS, attributes, error=error)
        self._sink.emit(run, span)

    def _end_offered(self, uid: RunUid, run: TracedRun, stored: StoredEvent) -> None:
        event: Any = e.decode(stored.body)
        found = self.offered.pop((uid, event.task), None)
        if found is None:
            return
        attempt, delivery, since, step, place = found
        failure = getattr(event, "failure", None)
        attributes = (
            ("weft.step", step),
            ("weft.place", place),
            ("weft.attempt", attempt),
            ("weft.delivery", delivery),
        )
        number = attempt_span(uid, event.task, attempt, delivery)
        error = failure.brief() if failure is not None else None
        start, end = since * NS_PER_MS, stored.at * NS_PER_MS
        self._sink.emit(run, EndedSpan(step, number, run.span_id, start, end, attributes, SpanKind.PRODUCER, error))


_OUTCOMES = {"wait_timed_out": "timed out", "entry_cancelled": "cancelled"}


def _wait_of(kind: str, stored: StoredEvent) -> _Wait:
    event: Any = e.decode(stored.body)
    name = " ".join(event.names) if kind == "message_awaited" else getattr(event, "workflow", "")
    return _Wait(_BEGINS[kind], name, stored.at * NS_PER_MS)


def _wait_of_event(stored: StoredEvent) -> _Wait:
    kind = str(e.decode(stored.body).__struct_config__.tag)
    return _wait_of(kind, stored) if kind in _BEGINS else _Wait("wait", "", stored.at * NS_PER_MS)


def _span_of_original(forked: e.ForkedFrom) -> TraceParent:
    """Return the span of the run that a fork was made from."""
    known = parse_traceparent(forked.trace) if forked.trace else None
    return known or TraceParent(trace_of(forked.uid, "", ""), run_span(forked.uid))
