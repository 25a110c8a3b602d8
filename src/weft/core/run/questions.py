"""Questions to people: who may answer, when a reminder is due, and which answer settles the question. Pure.

A question names people (``ann``) and groups (``role:ops``, ``team:sales``). A server knows who answers, and that
person's groups. On a local machine, any name and any group membership is accepted. An answer may include the digest of
the question that the person saw. If the question has changed since then, the answer is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.commands import DecideAsk, NoteTold
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer
from weft.core.events import (
    NULL,
    AnyEvent,
    AskAnswered,
    AskEscalated,
    AskOpened,
    AskReminded,
    AskTold,
    WaitTimedOut,
)
from weft.core.ids import EntryId
from weft.core.run.env import Env
from weft.core.run.state import Question, State
from weft.core.values import seal, unseal
from weft.errors import AlreadyDecided, BadValue, NotAllowed, NotFound, RunFinished

STARTED_BY = "weft.started_by"
"""The run attribute with the name of the person who started the run."""
STARTED_ROLES = "weft.started_roles"
"""The run attribute with the roles of that person, for the rules of the policy."""
GROUPS = ("role:", "team:")
PLACES_SHOWN_MAX = 20

_encode = msgspec.json.Encoder().encode
_canonical = msgspec.json.Encoder(order="deterministic").encode


def new_question(event: AskOpened, at: int) -> Question:
    """Create the question that an event opens."""
    return Question(
        title=event.title,
        since=at,
        form=event.form,
        about=event.about,
        of=event.of,
        quorum=event.quorum,
        due=event.due,
        on_timeout=event.on_timeout,
        escalate=event.escalate,
        four_eyes=event.four_eyes,
        remind_ms=event.remind_ms,
        remind_at=at + event.remind_ms if event.remind_ms else 0,
    )


def is_group(who: str) -> bool:
    """Return whether a name is a group, not a person."""
    return who.startswith(GROUPS)


def question_digest(question: Question) -> str:
    """Return a digest of the title, subject and form of a question."""
    content = _canonical([question.title, Raw(bytes(question.about)), question.form])
    return hashlib.sha256(content).hexdigest()[:32]


def allowed_people(question: Question) -> list[str]:
    """Return the people and groups that may answer now. An empty list means anybody."""
    if not question.of or not question.escalated:
        return question.of
    return [*question.of, *(who for who in question.escalate if who not in question.of)]


# --- time --------------------------------------------------------------------------------------------------------


def question_due(question: Question) -> int:
    """Return when the next reminder or the timeout of a question is due (0: never)."""
    times = [time for time in (question.due, question.remind_at) if time]
    return min(times, default=0)


def arm_question(number: int, question: Question) -> Sequence[AnyEffect]:
    """Arm the timer of an open question, if it has one."""
    due = question_due(question)
    return (ArmTimer(EntryId(number), due, mailed=True),) if due else ()


def arm_new_question(state: State) -> Sequence[AnyEffect]:
    """Arm the timer of the question that the last event opened."""
    return arm_question(state.seq, state.asks[state.seq])


def rearm_question(state: State, event: AskAnswered | AskEscalated | AskReminded) -> Sequence[AnyEffect]:
    """Arm the timer of a changed question again, or disarm it."""
    question = state.questions.get(event.ask)
    timer = arm_question(event.ask, question) if question is not None else ()
    return timer or (DisarmTimer(event.ask),)


def decide_due(number: EntryId, question: Question, now: int) -> Sequence[AnyEvent]:
    """Decide a timer of a question: its timeout, or a reminder."""
    if question.due and now >= question.due:
        return (_question_timed_out(number, question),)
    if question.remind_at and now >= question.remind_at:
        return (AskReminded(ask=number),)
    return ()


def _question_timed_out(number: EntryId, question: Question) -> AnyEvent:
    if question.on_timeout == "fail":
        return WaitTimedOut(wait=number)
    if question.on_timeout == "escalate":
        return AskEscalated(ask=number, of=question.escalate)
    approved = question.on_timeout == "approve"
    return AskAnswered(ask=number, approved=approved, reason="nobody answered in time")


def evolve_escalated(state: State, event: AskEscalated) -> None:
    """Let others answer too, without a time limit. Any one of them can settle the question alone."""
    question = state.questions[event.ask]
    question.escalated = True
    question.escalate = event.of
    question.due = 0


def evolve_reminded(state: State, event: AskReminded) -> None:
    """Schedule the next reminder, counted from this one. Missed reminders are not sent later."""
    question = state.questions[event.ask]
    question.reminded += 1
    question.remind_at = state.at + question.remind_ms


# --- notifications -----------------------------------------------------------------------------------------------


def notice_kind(question: Question) -> str:
    """Return the kind of notification that people should get: new_question, escalated or reminded."""
    if question.reminded:
        return f"reminded.{question.reminded}"
    return "escalated" if question.escalated else "opened"


def decide_notified(state: State, command: NoteTold) -> Sequence[AnyEvent]:
    """Record a notification. A repeated one, or one for a closed question, has no effect."""
    question = state.questions.get(command.ask)
    if question is None or question.told == command.notice:
        return ()
    return (AskTold(ask=EntryId(command.ask), notice=command.notice),)


def evolve_notified(state: State, event: AskTold) -> None:
    """Remember the last notification."""
    state.questions[event.ask].told = event.notice


# --- answers -----------------------------------------------------------------------------------------------------


def decide_ask(state: State, command: DecideAsk, number: int | None, env: Env) -> AskAnswered:
    """Decide the answer to an open question.

    Raises:
        NotFound, AlreadyDecided, RunFinished: the question is not open.
        NotAllowed: the person may not answer, or the question has changed since it was shown.
        BadValue: the form has the wrong type. The question stays open.
    """
    question = _open_question(state, command, number)
    assert number is not None
    if command.digest and command.digest != question_digest(question):
        raise NotAllowed(
            f"The question {command.ask!r} of {state.run_id} has changed since it was shown; nothing was decided.",
            hint="Look at the question again: weft inbox.",
            code="ask.other_subject",
        )
    answers_for = check_answerer(state, question, command)
    form = command.form if command.approved else NULL
    if command.approved and question.form is not None:
        form = _checked_form(question.form, command, env)
    return AskAnswered(
        ask=EntryId(number),
        approved=command.approved,
        by=command.by,
        reason=command.reason,
        form=form,
        decided=not command.approved or _is_settled(question, command.by, answers_for),
        of=answers_for,
        digest=command.digest,
    )


def _checked_form(schema: dict[str, Any], command: DecideAsk, env: Env) -> Raw:
    """Return the form as it is recorded. One that is left out is the default of its schema, if there is one.

    Raises:
        BadValue: the form has the wrong type.
    """
    error = env.check(schema, unseal(bytes(command.form)))
    if error is None:
        return command.form
    if command.form == NULL and "default" in schema:
        return Raw(seal(_encode(schema["default"])))
    raise BadValue(
        f"The form of {command.ask!r} has the wrong type: {error}.",
        hint="Answer again; the question is still open.",
        code="value.wrong_type",
    )


def find_open_question(state: State, name: str, places: Mapping[int, str]) -> int | None:
    """Return the number of the open question at this place, or the only candidate, or None.

    Raises:
        NotAllowed: several questions are open, and none is exactly at this place.
    """
    exact = [number for number, place in places.items() if place == name]
    if exact or len(places) < 2:
        return next(iter(exact or places), None)
    names = [f"{state.run_id}:{place}" for place in list(places.values())[:PLACES_SHOWN_MAX]]
    more = ", …" if len(places) > len(names) else ""
    raise NotAllowed(
        f"{state.run_id} has {len(places)} open questions at {name[:60]!r}; nothing was decided.",
        hint=f"Name one of them: {', '.join(names)}{more}",
        code="ask.ambiguous",
    )


def already_decided(state: State, name: str) -> AlreadyDecided:
    """Make the error for an answer to a question that is already decided."""
    return AlreadyDecided(f"The question {str(name)[:60]!r} of {state.run_id} is already decided.")


def _open_question(state: State, command: DecideAsk, number: int | None) -> Question:
    if number is None:
        raise NotFound(
            f"{state.run_id} has no question {str(command.ask)[:60]!r}.",
            hint=f"To see what the run waits for: weft explain {state.run_id}",
        )
    question = state.questions.get(number)
    if question is not None:
        return question
    if state.over:
        raise RunFinished(
            f"{state.run_id} is {state.status}; the answer was not recorded.", hint="", run_id=state.run_id
        )
    raise already_decided(state, str(command.ask))


def check_answerer(state: State, question: Question, command: DecideAsk) -> list[str]:
    """Return the people and groups of the question that this person answers for. Raises NotAllowed, AlreadyDecided."""
    found = _answers_for(state, question, command)
    if command.by and command.by in question.approvals:
        raise AlreadyDecided(f"{command.by} has already approved {command.ask!r}; it needs the approval of others.")
    return found


def _answers_for(state: State, question: Question, command: DecideAsk) -> list[str]:
    people = allowed_people(question)
    if command.by:
        forked_by = state.fork.by if state.fork is not None else ""
        if question.four_eyes and command.by in (state.attributes.get(STARTED_BY), forked_by):
            raise NotAllowed(
                f"{command.by} started {state.run_id}, so somebody else has to decide {command.ask!r}.",
                code="ask.not_yours",
            )
        if command.by == question.proposer:
            raise NotAllowed(
                f"{command.by} asks for this patch, so somebody else has to decide {command.ask!r}.",
                code="ask.not_yours",
            )
        matching = [who for who in people if _is_one_of(command, who)]
        if people and not matching:
            raise NotAllowed(
                f"{command.by} may not answer: {command.ask!r} is for {', '.join(people)}.",
                hint="Name the person who decides: --by NAME." if command.groups is None else "",
                code="ask.not_yours",
            )
        return matching
    if command.groups is not None or question.four_eyes or question.proposer or _approvals_needed(question) > 1:
        raise NotAllowed(
            f"{command.ask!r} must be decided by a person, but the answer names nobody.",
            hint="Name the person who decides: --by NAME.",
            code="ask.not_yours",
        )
    return []


def _is_one_of(command: DecideAsk, who: str) -> bool:
    """Return whether this person is ``who``, or belongs to that group. The name of a person never matches a group."""
    if not is_group(who):
        return who == command.by
    return command.groups is None or who in command.groups


def _approvals_needed(question: Question) -> int:
    """Return how many people have to approve."""
    if isinstance(question.quorum, int):
        return question.quorum
    return max(1, len(question.of)) if question.quorum == "all" else 1


def _is_settled(question: Question, by: str, answers_for: Sequence[str]) -> bool:
    """Return whether this approval is the last one needed."""
    if question.escalated and any(who in question.escalate for who in answers_for):
        return True
    if question.quorum != "all":
        return len(question.approvals) + 1 >= _approvals_needed(question)
    approvals = {name: question.stands.get(name, [name]) for name in question.approvals}
    return _has_approval_of_each(question.of, {**approvals, by: list(answers_for)})


def _has_approval_of_each(entries: Sequence[str], people: dict[str, list[str]]) -> bool:
    """Return whether every name and group in a question is covered by a different person."""
    taken: dict[str, str] = {}

    def place(person: str, seen: set[str]) -> bool:
        for entry in people[person]:
            if entry in seen or entry not in entries:
                continue
            seen.add(entry)
            if entry not in taken or place(taken[entry], seen):
                taken[entry] = person
                return True
        return False

    for person in people:
        place(person, set())
    return len(taken) >= len(set(entries))


def evolve_answer(state: State, event: AskAnswered) -> Raw | None:
    """Record the answer of one person. Returns the decision as JSON if the answer settles the question."""
    question = state.questions[event.ask]
    by = [*question.approvals, event.by] if event.by else list(question.approvals)
    if not event.decided:
        question.approvals = by
        if event.of:
            question.stands = {**question.stands, event.by: event.of}
        return None
    (state.asks if event.ask in state.asks else state.reviews).pop(event.ask)
    answer = {
        "approved": event.approved,
        "by": by if event.approved or not event.by else [event.by],
        "reason": event.reason,
        "form": event.form,
        "at": state.at,
    }
    return Raw(_encode(answer))
