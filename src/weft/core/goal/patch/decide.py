"""Decide the patch of a goal run: judge it, and write the plan and the event. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core.events import ABSENT, GoalChange, RecalledStep, RunPatched
from weft.core.findings import Finding
from weft.core.goal.items import Items
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.patch.judge import PatchedRun, judge_goal_patch, judge_undo
from weft.core.goal.patch.request import GoalConsequences, GoalJudgement, GoalRequest
from weft.core.goal.patch.values import decode_definitions
from weft.core.goal.plan import GoalPlan, decode_plan
from weft.core.goal.scripts import ScriptReader, decode_parts, encode_json
from weft.core.goal.state import GoalState
from weft.core.run.env import Env, MissingInputs
from weft.core.run.kernel import Kernel
from weft.core.run.patch_plan import PatchPlan, PatchRefusal, PlanEntry
from weft.core.run.statuses import run_finished
from weft.core.run.style import JudgedPatch
from weft.core.values import is_ref, preview_text, unseal
from weft.errors import Refused

_request: msgspec.json.Decoder[GoalRequest] = msgspec.json.Decoder(GoalRequest)


def judge_patch(items: Items, reader: ScriptReader, trial: Kernel, command: c.PatchRun, env: Env) -> JudgedPatch:
    """Return what a patch does to the run. ``trial`` is a copy of it. Raises RunFinished, Refused, MissingInputs."""
    state, plan = items.state, items.plan
    if plan is None or not state.begun:
        hint = "Start a new run with other input."
        raise Refused(f"{state.run_id} has not begun, so it cannot be patched.", hint=hint)
    flow = NeedCounts(plan, state)
    if state.status != "failed" and not flow.goals_left:
        raise run_finished(state, "its end is decided, so it cannot be patched; fork it instead")
    run = PatchedRun(plan, flow, reader, lambda: _read_past_outputs(trial, env), trial)
    request = _request.decode(command.prepared) if bytes(command.prepared) else GoalRequest()
    undoes = command.undoes
    found = judge_undo(run, undoes, env, ends=request.ends) if undoes else judge_goal_patch(run, request, env)
    shown = _patch_plan(found, failed=state.status == "failed")
    if found.change is None:
        return JudgedPatch(shown)
    shown = msgspec.structs.replace(shown, unchanged=_changes_nothing(found.change, state, plan))
    change = _with_values_in_blobs(found.change, env)
    return JudgedPatch(
        shown, RunPatched(rev=0, goal=change, patch=_patch_with_values_in_blobs(command.patch, request, env))
    )


def _changes_nothing(change: GoalChange, state: GoalState, plan: GoalPlan) -> bool:
    """Return whether a change leaves the plan as it is. Types of facts that were read may be missing in the new one."""
    bare = GoalChange(plan=change.plan, definitions=change.definitions, goals=change.goals)
    new = msgspec.structs.replace(decode_plan(change.plan), types=plan.types)
    return change == bare and new == plan and decode_definitions(change.definitions) == state.definitions


def _read_past_outputs(trial: Kernel, env: Env) -> Mapping[str, RecalledStep]:
    """Return what the completed steps gave, in the order in which they completed, from the log."""
    log = env.log()
    if log is None:
        raise MissingInputs(log=True)
    again: Kernel = trial.style.from_the_beginning()
    for past in log:
        again.evolve(past.event, at=past.at)
    recalled: Mapping[str, RecalledStep] = again.style.recalled
    return recalled


def _with_values_in_blobs(change: GoalChange, env: Env) -> GoalChange:
    """Return the change for the log, with large given values in blobs."""
    given = {name: env.keep(unseal(bytes(raw))) for name, raw in change.given.items()}
    return msgspec.structs.replace(change, given=given)


def _patch_with_values_in_blobs(patch: Raw, request: GoalRequest, env: Env) -> Raw:
    """Return the patch for the log, with large given values in blobs. Empty if it has none."""
    given = {name: env.keep(bytes(raw)) for name, raw in request.given.items()}
    if not any(is_ref(bytes(raw)) for raw in given.values()):
        return ABSENT
    return Raw(encode_json({**decode_parts(patch), "given": given}))


# --- the plan that people read -----------------------------------------------------------------------------------


def _patch_plan(found: GoalJudgement, *, failed: bool) -> PatchPlan:
    notes = []
    if failed and found.change is not None:
        notes.append("The run has failed. It follows the new plan when it is retried.")
    if found.does.ends:
        notes.append("The run completes with this patch.")
    refusals = [_patch_refusal(finding) for finding in found.findings]
    return PatchPlan(run="", entries=_plan_entries(found.does), notes=notes, refusals=refusals)


def _patch_refusal(finding: Finding) -> PatchRefusal:
    return PatchRefusal(f"patch.{finding.code}", finding.message, place=finding.path, hint=finding.suggestion)


def _plan_entries(does: GoalConsequences) -> list[PlanEntry]:
    listed: Sequence[tuple[str, Sequence[str]]] = (
        ("leaves", does.gone),
        ("joins", does.added),
        ("takes_up", does.taken_up),
        ("drops", does.dropped),
        ("starts", does.starts),
    )
    entries = [PlanEntry(what, step) for what, steps in listed for step in steps]
    facts = ((name, preview_text(msgspec.json.decode(unseal(bytes(raw))))) for name, raw in does.facts.items())
    return [PlanEntry("gives", name, detail=value) for name, value in facts] + entries
