"""Patches that are not applied at once: they wait until they are allowed, until people agree, or both. Pure.

``patch_asked`` opens such a patch, and its number names it from then on. ``follow_patches`` judges it again after every
event. If people must agree, they are asked about the plan as it is when the patch is allowed. Their approval is for
that plan: if the run has moved on so that the plan differs, they are asked again. ``run_patched`` or ``patch_dropped``
ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Raw

from weft.core import values
from weft.core.commands import FireTimer, PatchRun, WithdrawPatch
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer
from weft.core.events import (
    AnyEvent,
    AskAnswered,
    PatchAsked,
    PatchDropped,
    PatchReviewAsked,
    RunCancelledEvent,
    RunCompleted,
    RunFailedEvent,
    RunPatched,
)
from weft.core.ids import EntryId
from weft.core.run import questions
from weft.core.run.env import Env, MissingInputs
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.patches import check_review, judge_patch, moved_on, patch_count, patch_refused, too_many
from weft.core.run.state import AskedPatch, Question, State
from weft.core.run.statuses import ALLOWED
from weft.core.run.style import AnyRun, JudgedPatch
from weft.errors import NotFound, Refused, RunFinished, WeftError

PLACE = "patch@"
"""The prefix of the place of a patch. Its number follows."""
DIGITS_MAX = 18
REJECTED = "patch.rejected"
WITHDRAWN = "patch.withdrawn"
NOT_IN_TIME = "patch.not_in_time"
RUN_ENDED = "patch.run_ended"
MOVED_ON = "patch.moved_on"
OUTDATED = "the run has moved on since the review, and no code is here to replay it with; send the patch again"
_ENDS = (RunCompleted, RunFailedEvent, RunCancelledEvent)
_encode = msgspec.json.Encoder().encode


class TryingRun(AnyRun, Protocol):
    """A run that remembers after which event it judged its patches last."""

    tried: int


# --- asking ------------------------------------------------------------------------------------------------------


def decide_patch(run: AnyRun, command: PatchRun, env: Env) -> Sequence[AnyEvent]:
    """Return the event of a patch, or those that ask for it if it has to wait or to be reviewed.

    Raises PatchRefused with the plan, StaleBase, Refused, LimitExceeded, MissingInputs.
    """
    judged = judge_patch(run, command, env)
    check_asked(run, command, judged, env)
    plan, state = judged.plan, run.state
    waits = command.wait_ms > 0
    is_other = judged.is_outdated or (bool(command.expect) and command.expect != plan.digest)
    if is_other and not waits:
        raise moved_on(plan)
    if not waits and (judged.event is None or plan.refusals):
        raise patch_refused(plan)
    allowed = not is_other and is_allowed(run, judged, command.at)
    if allowed and not plan.review and judged.event is not None:
        return (judged.event,)
    check_review(plan, asks=command.asks, by=command.by)
    asked = ask_for_patch(command, plan.review, env)
    return (asked, ask_review(state.seq + 1, asked, plan)) if allowed else (asked,)


def check_asked(run: AnyRun, command: PatchRun, judged: JudgedPatch, env: Env) -> None:
    """Refuse a patch that would have to wait or to be reviewed, and cannot. Raises NotFound, Refused, LimitExceeded."""
    state, plan = run.state, judged.plan
    if command.wait_ms and state.over:
        raise Refused(
            f"{state.run_id} is {state.status}: nothing happens in it that a patch could wait for.",
            hint="Leave wait out.",
        )
    if command.at:
        run.style.is_all_at(command.at)  # refuses a place that is not there, whatever else is wrong
    allowed = is_allowed(run, judged, command.at) and command.expect in ("", plan.digest)
    asks = bool(plan.review) if allowed else command.wait_ms > 0
    if asks and patch_count(state) + len(state.asked) >= env.patches_max:
        raise too_many(state, env)


def ask_for_patch(command: PatchRun, review: Sequence[str], env: Env) -> PatchAsked:
    """Return the event that opens a patch."""
    return PatchAsked(
        patch=env.keep(bytes(command.patch)),
        base=command.base,
        version=command.version,
        prepared=env.keep(bytes(command.prepared)) if bytes(command.prepared) else command.prepared,
        undoes=command.undoes,
        expect=command.expect if command.wait_ms else "",
        by=command.by,
        reason=command.reason,
        due=env.now + command.wait_ms if command.wait_ms else 0,
        wait_at=command.at,
        review=list(review),
    )


def ask_review(number: int, asked: PatchAsked, plan: PatchPlan) -> PatchReviewAsked:
    """Return the event that asks people about a plan."""
    about = {
        "by": asked.by,
        "reason": asked.reason,
        "plan": msgspec.structs.replace(plan, review=[]),
        "patch": Raw(values.inline_json(bytes(asked.patch)) or b"null"),
    }
    what = f"Undo patch {asked.undoes} of" if asked.undoes else "Patch"
    reason = f" {asked.reason}" if asked.reason else ""
    title = f"{what} {plan.run}?{reason}"
    return PatchReviewAsked(asked=number, digest=plan.digest, title=title, about=Raw(values.seal(_encode(about))))


def is_allowed(run: AnyRun, judged: JudgedPatch, wait_at: str) -> bool:
    """Return whether a patch may be applied, or people may be asked about it, where the run stands now."""
    if judged.event is None or judged.plan.refusals:
        return False
    return not wait_at or run.style.is_all_at(wait_at)


# --- trying again ------------------------------------------------------------------------------------------------


def follow_patches(run: TryingRun, env: Env) -> Sequence[AnyEvent]:
    """Return the next event of a patch that was asked for: it is applied, shown to people, or dropped.

    Raises MissingInputs.
    """
    state = run.state
    if state.status not in ALLOWED[PatchRun].acts:
        number = next(iter(state.asked))
        return (PatchDropped(asked=number, code=RUN_ENDED, message=f"{state.run_id} is {state.status}"),)
    for number, patch in state.asked.items():
        events = () if number in state.reviews else _try_patch(run, number, patch, env)
        if events:
            return events
    run.tried = state.seq
    return ()


def _try_patch(run: AnyRun, number: int, patch: AskedPatch, env: Env) -> Sequence[AnyEvent]:
    asked = patch.event
    try:
        if asked.due and asked.wait_at and not run.style.is_all_at(asked.wait_at):
            return ()  # cheaper than judging it
        command = _patch_command(patch, env)
        judged = judge_patch(run, command, env)
        if judged.is_outdated:
            judged = judge_patch(run, msgspec.structs.replace(command, prepared=_replay_report(command, env)), env)
    except WeftError as error:
        code = RUN_ENDED if isinstance(error, RunFinished) else error.code
        return (PatchDropped(asked=number, code=code, message=error.message),)
    except MissingInputs as missing:
        if missing.log or missing.blobs or missing.questions or missing.replays or env.log() is None:
            raise
        gone = f"version {', '.join(missing.versions)} is not in the store"
        return (PatchDropped(asked=number, code="patch.invalid", message=gone),)
    plan = judged.plan
    if judged.is_outdated:
        return () if asked.due else (PatchDropped(asked=number, code=MOVED_ON, message=OUTDATED),)
    if not is_allowed(run, judged, asked.wait_at) or (asked.expect and asked.expect != plan.digest):
        return () if asked.due else (_refused_asked_patch(number, plan),)
    if asked.review and not (patch.approved_by and plan.digest == patch.digest):
        return (ask_review(number, asked, plan),)
    assert judged.event is not None
    return (msgspec.structs.replace(judged.event, asked=number),)


def _refused_asked_patch(number: int, plan: PatchPlan) -> PatchDropped:
    first = plan.refusals[0]
    return PatchDropped(asked=number, code=first.code, message=first.message)


def _patch_command(patch: AskedPatch, env: Env) -> PatchRun:
    asked = patch.event
    return PatchRun(
        patch=_load_value(asked.patch, env),
        base=asked.base,
        version=asked.version,
        prepared=_load_value(asked.prepared, env) if bytes(asked.prepared) else asked.prepared,
        undoes=asked.undoes,
        by=asked.by,
        reason=asked.reason,
        approved_by=patch.approved_by,
    )


def _replay_report(command: PatchRun, env: Env) -> Raw:
    """Return what the replay of a code run as it stands now found. Raises MissingInputs."""
    found = env.replayed(command.version)
    if found is None:
        raise MissingInputs(log=True) if env.log() is None else MissingInputs(replays=[command.version])
    return Raw(found)


def _load_value(raw: Raw, env: Env) -> Raw:
    """Return a value as it was given. Raises MissingInputs if it is a blob that is not in memory."""
    if not values.is_ref(bytes(raw)):
        return Raw(values.unseal(bytes(raw)))
    digest = values.parse_ref(bytes(raw)).digest
    found = env.blob(digest)
    if found is None:
        raise MissingInputs(blobs=[digest])
    return Raw(found)


def drop_before_end(state: State, events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
    """Return the events of a decision. If one ends the run, the patches that wait are dropped before it."""
    if not any(isinstance(event, _ENDS) for event in events):
        return events
    message = f"{state.run_id} has ended"
    dropped = [PatchDropped(asked=number, code=RUN_ENDED, message=message) for number in state.asked]
    return [*events[:-1], *dropped, events[-1]] if isinstance(events[-1], _ENDS) else [*dropped, *events]


# --- answers, time and withdrawal --------------------------------------------------------------------------------


def find_review(state: State, name: int | str) -> int | None:
    """Return the number of the patch whose review has this name. Raises AlreadyDecided."""
    word = name.removeprefix(PLACE) if isinstance(name, str) and name.startswith(PLACE) else ""
    number = int(word) if word.isdecimal() and word.isascii() and len(word) <= DIGITS_MAX else name
    if isinstance(number, int) and number in state.reviews:
        return number
    if isinstance(name, str) and isinstance(number, int) and number <= state.seq and not state.over:
        raise questions.already_decided(state, name)
    return None


def decide_review_answer(answer: AskAnswered) -> Sequence[AnyEvent]:
    """Return the events of an answer to a review. A patch that is rejected is dropped."""
    if answer.approved or not answer.decided:
        return (answer,)
    return (answer, PatchDropped(asked=answer.ask, code=REJECTED, by=answer.by, reason=answer.reason))


def decide_patch_timer(state: State, command: FireTimer, env: Env) -> Sequence[AnyEvent]:
    """Drop a patch whose time is over."""
    due = state.asked[command.entry].event.due
    if not due or env.now < due:
        return ()
    return (PatchDropped(asked=command.entry, code=NOT_IN_TIME, message="it was not allowed in time"),)


def decide_withdrawn(run: AnyRun, command: WithdrawPatch, _: Env) -> Sequence[AnyEvent]:
    """Drop a patch because somebody no longer wants it. Raises NotFound, Refused."""
    state = run.state
    if command.asked and command.asked not in state.asked:
        raise NotFound(f"{state.run_id} has no patch {command.asked} that waits.", hint=_changes_hint(state))
    if not state.asked:
        raise NotFound(f"{state.run_id} has no patch that waits.", hint=_changes_hint(state))
    if not command.asked and len(state.asked) > 1:
        numbers = ", ".join(map(str, state.asked))
        raise Refused(f"{len(state.asked)} patches of {state.run_id} wait.", hint=f"Name one of them: {numbers}")
    number = command.asked or next(iter(state.asked))
    return (PatchDropped(asked=number, code=WITHDRAWN, by=command.by, reason=command.reason),)


def _changes_hint(state: State) -> str:
    return f"To see what happened to it: weft events {state.run_id} --changes"


# --- evolve ------------------------------------------------------------------------------------------------------


def evolve_patch_asked(state: State, event: PatchAsked) -> None:
    """Open a patch."""
    state.asked[state.seq] = AskedPatch(event, state.at)


def evolve_review_asked(state: State, event: PatchReviewAsked) -> None:
    """Ask people about the plan of a patch. An approval of another plan no longer counts."""
    patch = state.asked[event.asked]
    patch.digest, patch.approved_by = event.digest, []
    asked = patch.event
    state.reviews[event.asked] = Question(
        title=event.title, since=state.at, about=event.about, of=asked.review, proposer=asked.by, due=asked.due
    )


def evolve_answered(state: State, event: AskAnswered) -> None:
    """Remember who has agreed. The next ``follow`` applies the patch."""
    answer = questions.evolve_answer(state, event)
    if answer is not None and event.approved:
        state.asked[event.ask].approved_by = msgspec.json.decode(answer)["by"]


def evolve_dropped(state: State, event: PatchDropped) -> None:
    """Close a patch that is not applied."""
    state.asked.pop(event.asked, None)
    state.reviews.pop(event.asked, None)


def disarm(_: AnyRun, event: RunPatched | PatchDropped) -> Sequence[AnyEffect]:
    """Disarm the timer of a patch that has ended."""
    return (DisarmTimer(EntryId(event.asked)),) if event.asked else ()


def arm(run: AnyRun, event: PatchAsked) -> Sequence[AnyEffect]:
    """Arm the timer of a patch that waits."""
    return (ArmTimer(EntryId(run.state.seq), event.due),) if event.due else ()
