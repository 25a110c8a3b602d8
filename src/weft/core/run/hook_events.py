"""What hooks are told: the events of runs that a hook can be registered for, in the form that it gets. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from weft.core import events as e
from weft.core.durations import time_of
from weft.core.ids import tenant_prefix
from weft.core.run.state import State
from weft.core.run.style import AnyRun
from weft.core.values import INLINE_BYTES_MAX, MARKED
from weft.errors import Failure

HookKind = Literal[
    "run_failed",
    "run_completed",
    "run_held",
    "step_retried",
    "dead_letter",
    "question_opened",
    "question_escalated",
    "question_reminded",
]
HOOK_KINDS: tuple[HookKind, ...] = get_args(HookKind)
QUESTION_KINDS = frozenset(kind for kind in HOOK_KINDS if kind.startswith("question_"))
TEXT_MAX = 2_000
"""The length of the texts in an event that would be too large otherwise."""

_KINDS: dict[type, HookKind] = {
    e.RunFailedEvent: "run_failed",
    e.RunCompleted: "run_completed",
    e.RunHeld: "run_held",
    e.TaskFailed: "step_retried",
    e.FailureRaised: "dead_letter",
    e.AskOpened: "question_opened",
    e.PatchReviewAsked: "question_opened",
    e.PerformAsked: "question_opened",
    e.AskEscalated: "question_escalated",
    e.AskReminded: "question_reminded",
}
HOOKED = frozenset(_KINDS)
"""The events of the log that hooks may be told of."""


class HookQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The question of an event. ``id`` is its id in the inbox, and ``number`` its number in the run."""

    id: str
    number: int
    title: str
    of: list[str] = []
    due_at: datetime | None = None


class HookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a run, as a hook gets it.

    ``status`` is that of the run after the event, and ``number`` the number of the event in its log. ``place`` and
    ``step`` say where in the run it happened, if it is about a step, a node or a question.
    """

    kind: HookKind
    run_id: str
    uid: str
    workflow: str
    version: str
    tenant: str = ""
    status: str
    number: int
    at: datetime
    attributes: dict[str, Any] = {}
    parent: str = ""
    """The id of the run that started this run, if it is a child."""
    error: Failure | None = None
    place: str = ""
    step: str = ""
    attempt: int = 0
    """The attempt that failed, if a step is retried."""
    retry_at: datetime | None = None
    question: HookQuestion | None = None
    shortened: bool = False
    """The event was too large or could not be passed on whole: attributes and details of the error are missing."""

    @property
    def summary(self) -> str:
        """The event in one line, for the subject of a mail or for a chat."""
        return f"{self.run_id} {_SUMMARIES[self.kind]}{self._what_happened()}"

    def _what_happened(self) -> str:
        if self.question is not None:
            return f" {', '.join(self.question.of) or 'anybody'}: {first_line(self.question.title)}"
        where = f" at {self.place}" if self.place and self.kind in ("step_retried", "dead_letter") else ""
        error = first_line(self.error.message) if self.kind == "run_held" and self.error is not None else ""
        error = error or (self.error.brief() if self.error is not None else "")
        return f"{where}: {error}" if error else where


_SUMMARIES: dict[HookKind, str] = {
    "run_failed": "failed",
    "run_completed": "completed",
    "run_held": "is held",
    "step_retried": "retries a step",
    "dead_letter": "has a dead letter",
    "question_opened": "asks",
    "question_escalated": "got no answer in time and asks",
    "question_reminded": "still asks",
}


def first_line(text: str) -> str:
    """Return the first line of a text."""
    return text.partition("\n")[0]


encode_hook_event = msgspec.json.Encoder().encode


def hook_event(run: AnyRun, event: e.AnyEvent) -> HookEvent | None:
    """Return what hooks are told of the event that was just applied; None if it is of no kind that they know."""
    kind = _KINDS.get(type(event))
    if kind is None or (isinstance(event, e.TaskFailed) and not event.retry_at):
        return None
    return _hook_event(run.state, kind, run.state.seq, _event_details(run, event))


def opened_question(state: State, number: int, place: str) -> HookEvent:
    """Return what hooks would have been told of an open question when it was asked."""
    return _hook_event(state, "question_opened", number, _question_details(state, number, place))


def _hook_event(state: State, kind: HookKind, number: int, details: dict[str, Any]) -> HookEvent:
    tenant = tenant_prefix(state.run_id)
    return HookEvent(
        kind=kind,
        run_id=state.run_id,
        uid=state.uid,
        workflow=state.workflow,
        version=state.version,
        tenant=tenant[1:-1],
        status=state.status,
        number=number,
        at=time_of(state.at),
        attributes=state.attributes,
        parent=state.parent.run_id if state.parent is not None else "",
        **details,
    )


def _event_details(run: AnyRun, event: e.AnyEvent) -> dict[str, Any]:
    """Return the fields that only some kinds have."""
    state = run.state
    match event:
        case e.RunFailedEvent(failure=failure):
            return {"error": failure, "place": failure.location, "step": failure.step}
        case e.RunHeld(code=code, message=message, location=place):
            return {"error": Failure(type="held", message=message, code=code), "place": place}
        case e.TaskFailed(task=number, failure=failure, attempt=attempt, retry_at=retry_at):
            task = state.tasks.get(number) or state.parked.get(number)
            step = task.step if task is not None else failure.step
            at = {"place": run.location(number), "step": step, "attempt": attempt, "retry_at": time_of(retry_at)}
            return {"error": failure, **at}
        case e.FailureRaised(node=node, failure=failure):
            return {"error": failure, "place": failure.location or node, "step": failure.step}
        case e.AskOpened():
            return _question_details(state, state.seq, run.location(state.seq))
        case e.PatchReviewAsked(asked=number) | e.PerformAsked(task=number):
            return _question_details(state, number, run.location(number))
        case e.AskEscalated(ask=number) | e.AskReminded(ask=number):
            return _question_details(state, number, run.location(number))
    return {}


def _question_details(state: State, number: int, place: str) -> dict[str, Any]:
    question = state.questions[number]
    of = [*question.of, *(question.escalate if question.escalated else ())]
    due_at = time_of(question.due) if question.due else None
    title = question.title[:TEXT_MAX]
    asked = HookQuestion(id=f"{state.run_id}:{place}", number=number, title=title, of=of, due_at=due_at)
    return {"place": place, "question": asked}


def fit_event(event: HookEvent) -> bytes:
    """Return an event as JSON. If it is too large for a log, it goes without its details, and says so.

    The same holds if an exception carries data that would be read as a reference of Weft's own.
    """
    raw = encode_hook_event(event)
    if len(raw) <= INLINE_BYTES_MAX and raw.find(MARKED) < 0:
        return raw
    error, question = event.error, event.question
    if error is not None:
        error = Failure(
            type=error.type[:TEXT_MAX],
            message=error.message[:TEXT_MAX],
            code=error.code,
            step=error.step,
            location=error.location[:TEXT_MAX],
            attempts=error.attempts,
            where=error.where[:TEXT_MAX],
        )
    if question is not None:
        question = msgspec.structs.replace(question, of=question.of[:20])
    short = msgspec.structs.replace(event, attributes={}, error=error, question=question, shortened=True)
    return encode_hook_event(short)
