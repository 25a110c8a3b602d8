"""Judge a patch of a goal run: plan again, work out what follows, and refuse what must not happen. Pure.

Rules: docs/internals/goal.md#9-patches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.findings import Finding
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.patch.pool import StepPool, earlier_pool, requested_pool
from weft.core.goal.patch.replan import awaited_needs, dead_needs, goals_left, replan
from weft.core.goal.patch.request import GoalConsequences, GoalJudgement, GoalRequest
from weft.core.goal.patch.standing import facts_read, has_begun, is_predicate_false
from weft.core.goal.patch.values import FactValues, Past, added_outcomes, encode_definitions
from weft.core.goal.plan import GoalPlan, encode_plan
from weft.core.goal.planner import KnownFacts
from weft.core.goal.retry import closed_steps, reopen
from weft.core.goal.scripts import ScriptReader
from weft.core.goal.settle import NOT_MATCHED
from weft.core.goal.state import GoalState, copy_state
from weft.core.run.env import Env, allow_any_child, keep_inline
from weft.core.run.kernel import Kernel

PERFORMED = (e.TaskScheduled, e.ChildStarted, e.AskOpened, e.WorkResumed)


class PatchedRun(NamedTuple):
    """The run that a patch is for."""

    plan: GoalPlan
    flow: NeedCounts
    reader: ScriptReader
    past: Past
    trial: Kernel
    """A copy of the run, to try the patch on."""

    @property
    def state(self) -> GoalState:
        return self.flow.state


def judge_goal_patch(run: PatchedRun, request: GoalRequest, env: Env) -> GoalJudgement:
    """Judge a patch. Raises MissingInputs."""
    found: list[Finding] = []
    if request.says_nothing:
        hint = "Say what changes: given, goals, steps, catalogue or replan."
        return GoalJudgement([Finding("says_nothing", "the patch changes nothing.", suggestion=hint)])
    pool = requested_pool(run.state, run.plan, request, found)
    return _judge_pool(run, request, pool, found, env)


def judge_undo(run: PatchedRun, rev: int, env: Env, *, ends: bool = False) -> GoalJudgement:
    """Judge a patch that restores the goals and definitions from before the patch ``rev``. Raises MissingInputs."""
    pool = earlier_pool(run.state, run.plan, rev)
    return _judge_pool(run, GoalRequest(replan=True, ends=ends), pool, [], env)


def _judge_pool(run: PatchedRun, request: GoalRequest, pool: StepPool, found: list[Finding], env: Env) -> GoalJudgement:
    state, plan = run.state, run.plan
    # Nothing is stored and no child is started before the patch is decided.
    env = msgspec.structs.replace(env, keep=keep_inline, check_child=allow_any_child)
    found += _find_dropped_goals(state, plan, pool)
    values = FactValues(state, run.reader, env)
    values.give(request.given, facts_read(state, plan.steps, run.flow), found)
    if not pool.goals:
        return GoalJudgement(found)
    known = _known_facts(run, pool, values)
    again = replan(state, plan, pool, known, found)
    values.check_types(request.given, again.types, found)
    if found:
        return GoalJudgement(found)
    again = msgspec.structs.replace(again, types=values.checked_types(again, plan))
    change = _goal_change(run, pool, values, again)
    return _try_change(run, _without_unneeded_steps(run, change), env, ends=request.ends)


def _known_facts(run: PatchedRun, pool: StepPool, values: FactValues) -> KnownFacts:
    """Return what a new plan can rely on."""
    flow, plan = _counts_after_retry(run), run.plan
    return msgspec.structs.replace(
        values.known(pool),
        dead=dead_needs(flow, pool, plan),
        awaited=awaited_needs(flow, pool, plan),
        goals_left=goals_left(flow, pool, plan),
    )


def _counts_after_retry(run: PatchedRun) -> NeedCounts:
    """Return the counts of the run; for a failed run, the counts that it would have after a retry."""
    if run.state.status != "failed":
        return run.flow
    copy = copy_state(run.state)
    for step in closed_steps(copy):
        reopen(copy, step)
    return NeedCounts(run.plan, copy)


def _find_dropped_goals(state: GoalState, plan: GoalPlan, pool: StepPool) -> Iterator[Finding]:
    """Yield a finding for each added goal that was dropped while it was active: it would count as skipped."""
    for goal in pool.goals:
        run = state.steps.get(goal)
        if run is None or goal in plan.goals or goal not in pool.fixed or state.status == "failed":
            continue
        if run.status == "skipped" and run.why != NOT_MATCHED and not is_predicate_false(run) and has_begun(run):
            message = f"{goal} was dropped while it was active, so it cannot be a goal any more."
            hint = "Add the step under another id, or fork the run before it was dropped."
            yield Finding("goal_over", message, path=goal, suggestion=hint)


def _goal_change(run: PatchedRun, pool: StepPool, values: FactValues, plan: GoalPlan) -> e.GoalChange:
    state, before = run.state, run.plan
    open_steps = [step for step in plan.steps if step in before.steps and step not in pool.fixed]
    taken_up = [step for step in open_steps if state.steps[step].status == "skipped" and state.status != "failed"]
    forgotten = {step: _changed_deadline_needs(run, plan, step) for step in open_steps}
    others = {step: pool.steps[step] for step in pool.kept if step not in plan.steps and step in pool.steps}
    return e.GoalChange(
        plan=Raw(encode_plan(plan)),
        definitions=encode_definitions(others),
        goals=plan.goals,
        given=values.given,
        gone=[step for step in before.steps if step not in plan.steps],
        taken_up=taken_up,
        forgotten={step: facts for step, facts in forgotten.items() if facts},
        filled=values.fill(state, plan, pool, run.past),
        recalled=added_outcomes(state, before, pool, run.past),
    )


def _without_unneeded_steps(run: PatchedRun, change: e.GoalChange) -> e.GoalChange:
    """Return the change without the skipped steps that are not needed, which would only be skipped again."""
    if not change.taken_up:
        return change
    style = run.trial.style.trial().style
    style.apply_change(change)
    return msgspec.structs.replace(change, taken_up=[step for step in change.taken_up if style.flow.steps[step].needed])


def _changed_deadline_needs(run: PatchedRun, plan: GoalPlan, step: str) -> list[str]:
    """Return the needs of a step that have changed and whose deadline is set or has passed."""
    before, after, known = run.plan.steps[step].needs, plan.steps[step].needs, run.state.steps[step]
    return sorted(fact for fact in [*known.windows, *known.decided] if before.get(fact) != after.get(fact))


# --- what follows ------------------------------------------------------------------------------------------------


def _try_change(run: PatchedRun, change: e.GoalChange, env: Env, *, ends: bool) -> GoalJudgement:
    """Apply a change to a copy of the run, and let the copy continue until it waits."""
    failed, trial = run.state.status == "failed", run.trial
    active = {step for step, each in run.state.steps.items() if each.status == "active"}
    trial.style.apply_change(change)
    added = [step for step in trial.style.state.steps if step not in run.plan.steps]
    does = GoalConsequences(gone=change.gone, added=added, taken_up=change.taken_up, facts=change.given)
    if failed:
        trial.evolve(e.RunRetried(steps=closed_steps(trial.style.state)), at=env.now)
    else:
        trial.state.status, trial.state.held = "running", None  # a paused run continues when it is resumed
    starts: list[str] = []
    dropped: list[str] = []
    for event in _follow_until_waiting(trial, env):
        if isinstance(event, e.RunEnding):
            return GoalJudgement([_run_would_fail_finding(event)])
        if isinstance(event, e.StepStarted):
            starts.append(event.step)
        elif isinstance(event, e.StepSkipped) and event.step in active:
            dropped.append(event.step)
        if failed and (isinstance(event, PERFORMED) or (isinstance(event, e.StepStarted) and event.task is not None)):
            break
    if failed:
        return GoalJudgement([], change, does)
    completes = trial.state.over or trial.style.flow.goals_left == 0
    if completes and not ends:
        hint = 'Say "ends: true" if the run may complete now.'
        return GoalJudgement([Finding("would_end", "the run would complete with this patch.", suggestion=hint)])
    does = msgspec.structs.replace(does, starts=sorted(starts), dropped=sorted(dropped), ends=completes)
    return GoalJudgement([], change, does)


def _follow_until_waiting(trial: Kernel, env: Env) -> Iterator[e.AnyEvent]:
    while not trial.state.over and (events := trial.follow(env)):
        for event in events:
            trial.evolve(event, at=env.now)
            yield event


def _run_would_fail_finding(event: e.RunEnding) -> Finding:
    assert event.failure is not None
    message = f"the run would fail: {event.failure.message}."
    return Finding(
        "would_end", message, path=event.failure.step, suggestion="Give what is missing, or remove the goal."
    )
