"""Decide and apply the patch of a run. What a patch means differs between styles; the rest is here. Pure."""

from __future__ import annotations

import msgspec

from weft.core import values
from weft.core.commands import PatchRun
from weft.core.events import RunPatched
from weft.core.plurals import pluralize
from weft.core.run import undo
from weft.core.run.env import Env
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.state import Revision, State
from weft.core.run.statuses import permits, run_finished
from weft.core.run.style import AnyRun, JudgedPatch
from weft.errors import LimitExceeded, PatchRefused, Refused, StaleBase


def judged_event(state: State, command: PatchRun, judged: JudgedPatch) -> RunPatched:
    """Return the event of a patch that a style has worked out for another command. Raises PatchRefused."""
    found = _complete_judgement(judged, state, command, [])
    if found.event is None or found.plan.refusals:
        raise patch_refused(found.plan)
    return found.event


def judge_patch(run: AnyRun, command: PatchRun, env: Env) -> JudgedPatch:
    """Work out what a patch does to a run as it stands, and change nothing.

    Raises StaleBase, RunFinished, Refused, LimitExceeded, MissingInputs.
    """
    state = run.state
    permits(state, command)
    if command.base and command.base != state.version:
        raise stale_base(state, command.base)
    check_open(run, env)
    return _complete_judgement(run.style.judge_patch(command, env), state, command, review_of(run, command))


def check_open(run: AnyRun, env: Env) -> None:
    """Raise RunFinished, RunUndone or LimitExceeded if a run can have no patch."""
    state = run.state
    if state.ended and not state.over:
        raise run_finished(state, "it cannot be patched; fork it instead")
    if state.undone and not run.style.repeats_undone:
        raise undo.already_undone(state)
    check_limit(state, env)


def check_limit(state: State, env: Env) -> None:
    """Raise LimitExceeded if a run can have no more patches."""
    if patch_count(state) >= env.patches_max:
        raise too_many(state, env)


def patch_count(state: State) -> int:
    """Return how many patches a run has had. Going back to a place changes no definition, and does not count."""
    return sum(not revision.retried for revision in state.revisions)


def review_of(run: AnyRun, command: PatchRun) -> list[str]:
    """Return who must agree to a patch. If the workflow names people, it is them, whomever the patch names.

    A review of many patches together counts if only such people were asked.
    """
    required = list(run.style.review)
    if required and command.reviewed_by and set(command.reviewed_by) <= set(required):
        return []
    return required or command.review


def _complete_judgement(judged: JudgedPatch, state: State, command: PatchRun, review: list[str]) -> JudgedPatch:
    """Fill in what every plan and every event has."""
    version = command.version or state.version
    plan = msgspec.structs.replace(
        judged.plan,
        run=state.run_id,
        base=state.version,
        version=version,
        rev=len(state.revisions) + 1,
        undoes=command.undoes,
        patch=_patch_digest(command),
        review=review,
        unchanged=judged.plan.unchanged and version == state.version and not command.undoes,
    ).signed()
    if judged.event is None or plan.refusals:
        return JudgedPatch(plan, is_outdated=judged.is_outdated)
    event = msgspec.structs.replace(
        judged.event,
        rev=plan.rev,
        base=plan.base,
        version=plan.version,
        patch=judged.event.patch or command.patch,
        by=command.by,
        reason=command.reason,
        approved_by=command.approved_by,
        digest=plan.digest,
        undoes=command.undoes,
    )
    return JudgedPatch(plan, event, judged.is_outdated)


def _patch_digest(command: PatchRun) -> str:
    """Return the digest of a patch. The reason is left out: it changes nothing."""
    fields = msgspec.json.decode(command.patch)
    return values.digest(msgspec.json.encode({name: fields[name] for name in fields if name != "reason"}))


def evolve_patched(state: State, event: RunPatched) -> None:
    """Record the revision. Called by the row of every style that can be patched, which applies the rest."""
    if event.version != state.version:
        state.version = event.version
    state.revisions.append(
        Revision(state.seq, event.base, event.version, undoes=event.undoes, retried=bool(event.retried))
    )
    if event.asked:
        state.asked.pop(event.asked, None)


def too_many(state: State, env: Env) -> LimitExceeded:
    """Return the error for a run that has had all the patches it may have."""
    return LimitExceeded(
        f"{state.run_id} has had {env.patches_max} patches; it can have no more.",
        hint="Go on with a fork, or raise patches in [tool.weft.limits].",
        code="limit.patches",
    )


def patch_refused(plan: PatchPlan) -> PatchRefused:
    """Return the error for a patch that does not fit the run, with all reasons."""
    first, more = plan.refusals[0], len(plan.refusals) - 1
    rest = f" ({more} more)" if more else ""
    return PatchRefused(
        f"{plan.run} cannot be patched: {first.message.rstrip('.')}{rest}.",
        hint=first.hint,
        code=first.code,
        plan=plan,
        findings=list(plan.refusals),
    )


def check_review(plan: PatchPlan, *, asks: bool, by: str) -> None:
    """Check whether people can be asked about a patch to which they must agree. Raises Refused."""
    if not plan.review:
        return
    who = ", ".join(plan.review)
    if not asks:
        hint = f"Let these people review it: --review {who}"
        raise Refused(f"A patch of {plan.run} must be reviewed by {who}.", hint=hint, code="patch.needs_review")
    if not by:
        raise Refused(
            f"The patch of {plan.run} is reviewed by {who}, so it must say who asks for it.",
            hint="Name yourself, for example with by=.",
            code="patch.no_author",
        )


def moved_on(plan: PatchPlan) -> PatchRefused:
    """Return the error for a plan that is not the one that was expected, now or ever."""
    return PatchRefused(
        f"The plan of this patch of {plan.run} is not the expected one: its digest is {plan.digest} now.",
        hint=f"Read the new plan, then apply it with --expect {plan.digest}",
        code="patch.moved_on",
        plan=plan,
        findings=list(plan.refusals),
    )


def stale_base(state: State, base: str) -> StaleBase:
    """Return the error for a patch that was written against another version."""
    known = [revision.base for revision in state.revisions if not revision.retried]
    since = len(known) - known.index(base) if base in known else 0
    text = f" It has had {pluralize(since, 'patch')} since." if since else ""
    return StaleBase(
        f"The patch was written against version {base[:16]}, but {state.run_id} follows {state.version[:16]}.{text}",
        hint=f"To see what has changed: weft show {state.run_id} --versions",
        run_id=state.run_id,
        base=base,
        version=state.version,
        revisions=since,
    )
