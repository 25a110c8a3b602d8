"""What was asked and answered at a place of a run, from its log. Also of questions that are decided."""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.core import events as e
from weft.observe.event_parts import EventPart, Unfolding, read_parts
from weft.observe.place_log import PlaceLog
from weft.observe.places import RunPlace
from weft.ports.store import RunRow
from weft.runtime.service import RunService

Outcome = Literal["open", "approved", "rejected", "timed_out", "withdrawn"]


class Vote(msgspec.Struct, frozen=True):
    """The answer of one person."""

    by: str
    approved: bool
    at: int
    reason: str
    decided: bool
    """Whether this answer settled the question."""
    form: bytes = b"null"


class QuestionLog(msgspec.Struct, frozen=True):
    """A question with all that happened to it. ``due`` is 0 if it has no time limit, or others were asked instead."""

    opened: e.AskOpened
    since: int
    due: int
    escalated_to: list[str]
    votes: list[Vote]
    outcome: Outcome
    ended: int | None


async def question_log(service: RunService, row: RunRow, log: PlaceLog, place: str) -> QuestionLog | None:
    """Return the newest question that was asked at a place; None if none was. Raises RunUnreadable."""
    found = next((one for one in reversed(log.places) if _is_question(one, place)), None)
    if found is None:
        return None
    last = found.changes[-1]
    until = log.seq if last.status == "open" else last.seq  # an answer that does not settle it changes no place
    page = [stored async for stored in service.reader.events(row, after=found.began - 1, until=until)]
    return _read_question_log(found, await read_parts(service, row, page, Unfolding()))


def _is_question(place: RunPlace, name: str) -> bool:
    return place.operation.kind == "ask" and place.operation.location == name


def _read_question_log(place: RunPlace, parts: list[EventPart]) -> QuestionLog | None:
    number = place.began
    opened: e.AskOpened | None = None
    votes: list[Vote] = []
    escalated_to: list[str] = []
    outcome: Outcome = "open"
    ended: int | None = None
    for part in parts:
        event = part.event
        if isinstance(event, e.AskOpened) and part.seq == number:
            opened = event
        elif isinstance(event, e.AskEscalated) and event.ask == number:
            escalated_to = event.of
        elif isinstance(event, e.AskAnswered) and event.ask == number:
            votes.append(Vote(event.by, event.approved, part.at, event.reason, event.decided, bytes(event.form)))
            if event.decided:
                outcome, ended = "approved" if event.approved else "rejected", part.at
        elif isinstance(event, e.WaitTimedOut) and event.wait == number:
            outcome, ended = "timed_out", part.at
    if opened is None:
        return None
    last = place.changes[-1]
    if outcome == "open" and last.status != "open":
        outcome, ended = "withdrawn", last.at
    due = 0 if escalated_to else opened.due
    return QuestionLog(opened, parts[0].at, due, escalated_to, votes, outcome, ended)
