"""The tool ``patch_workflow``: plan the patch, ask the policy and people about it, and apply what they saw."""

from __future__ import annotations

import msgspec

from weft.agents.spec import AgentSpec
from weft.authoring.agents.approval import WantedCall, needs_approval
from weft.authoring.agents.conversations import service_here
from weft.authoring.agents.covers import tool_cover
from weft.authoring.agents.operations import cover_call, loop_scope
from weft.authoring.agents.permission import RunPolicy
from weft.authoring.agents.tool_results import CallOutcome, error_outcome
from weft.authoring.agents.workflow_patches import AgentPatch, PatchReport, WorkflowPatcher
from weft.authoring.context import Context

_encode = msgspec.json.Encoder().encode


async def patch_workflow(ctx: Context, spec: AgentSpec, wanted: WantedCall, policy: RunPolicy) -> CallOutcome:
    """Patch the graph run that the agent is a node of, or a workflow. A patch that is refused is told back.

    Raises BudgetExceeded.
    """
    given = wanted.arguments["patch_spec"]
    patch = AgentPatch(
        operations=given["operations"],
        description=given.get("description", ""),
        tag=wanted.arguments.get("workflow_tag", ""),
    )
    service, state = service_here(), loop_scope().driver.machine.state
    run_id, key = state.run_id, f"{state.uid}/{loop_scope().prefix}patch"

    def counted(report: PatchReport) -> PatchReport:
        if report.is_denied:
            policy.count_refusal(wanted.tool.name)
        return report

    async def plan_patch() -> PatchReport:
        return counted(await WorkflowPatcher(service(), spec.agent, run_id).plan(patch))

    plan = await ctx.step("plan", plan_patch)
    if plan.error:
        return error_outcome(plan.error, findings=plan.findings)
    verdict = await policy.patch_verdict(wanted.tool.name, plan.workflow, plan.names)
    if verdict.permission == "deny":
        return error_outcome("not permitted", rule=verdict.rule) if verdict.rule else error_outcome("not permitted")
    approved_by: list[str] = []
    if needs_approval(spec, wanted, verdict):
        seen = {"run": plan.run, "workflow": plan.workflow, "changes": plan.changes, "plan": plan.digest}
        answer = await policy.approval(spec, wanted, verdict, seen)
        if not answer.approved:
            return error_outcome("a person said no", reason=answer.reason)
        approved_by = list(answer.by)

    async def apply_patch() -> PatchReport:
        return counted(await WorkflowPatcher(service(), spec.agent, run_id).apply(patch, plan, approved_by, key))

    await cover_call(tool_cover(wanted.tool.name))
    done = await ctx.step("patch", apply_patch)
    if done.error:
        return error_outcome(done.error, findings=done.findings)
    shown = {name: getattr(done, name) for name in ("run", "workflow", "version", "changes", "applied", "review")}
    return CallOutcome(_encode({name: value for name, value in shown.items() if value}).decode(), is_performed=True)
