"""Check an open goal run: its planned steps must exist in this process, with the same needs and gives."""

from __future__ import annotations

from weft.core.events import DEFAULT_POLICY
from weft.core.goal.definitions import StepDef, StepWay, WorkflowWay
from weft.core.goal.machine import GoalMachine
from weft.core.goal.plan import decode_plan
from weft.core.goal.state import OVER_STEP
from weft.observe.live_finding import LiveFinding, LiveRun, not_hosted_finding, refused_change


async def check_goal(run: LiveRun, machine: GoalMachine) -> LiveFinding:
    """Return the first planned step that is missing or different in this process."""
    if run.code.program(run.row.workflow, run.row.version) is None:
        return not_hosted_finding(run)
    if run.change.replan:
        return await _plan_again(run)
    state = machine.state
    found = []
    for name, planned in decode_plan(bytes(state.plan)).steps.items() if bytes(state.plan) != b"null" else ():
        step = state.steps.get(name)
        if step is None or step.status not in OVER_STEP:
            found += [finding for finding in (_check_step(run, planned),) if finding is not None]
    found.sort(key=lambda finding: finding.verdict != "not hosted")
    return found[0] if found else LiveFinding()


async def _plan_again(run: LiveRun) -> LiveFinding:
    """Return what planning the run again with the steps of now would do."""
    plan = await run.dry_run({"catalogue": "now", "replan": True})
    if plan.refusals:
        return refused_change(plan.refusals[0])
    if not plan.entries:
        return LiveFinding()
    does = "; ".join(f"{entry.what} {entry.place}" for entry in plan.entries)
    return LiveFinding(verdict="replanned", place=plan.entries[0].place, message=f"Planned again, it {does}.")


def _check_step(run: LiveRun, planned: StepDef) -> LiveFinding | None:
    way, name = planned.way, planned.id
    if isinstance(way, StepWay) and planned.policy.queue == DEFAULT_POLICY.queue and run.code.step(way.step) is None:
        return LiveFinding(verdict="not hosted", place=name, message=f'There is no step "{way.step}" here.')
    if isinstance(way, WorkflowWay) and way.workflow not in run.code.startable():
        return LiveFinding(verdict="not hosted", place=name, message=f'There is no workflow "{way.workflow}" here.')
    now = run.code.planned_step(name)
    if now is None:
        return LiveFinding(verdict="not hosted", place=name, message=f'No step "{name}" is registered here.')
    for what, recorded, asked in (("needs", planned.needs, now.needs), ("gives", planned.gives, now.gives)):
        if recorded != asked:
            return LiveFinding(
                verdict="changed",
                place=name,
                recorded=f"{what} {', '.join(recorded) or 'nothing'}",
                asked=f"{what} {', '.join(asked) or 'nothing'}",
                message=f"{name} {what} something else now. The run keeps the step of its plan.",
            )
    return None
