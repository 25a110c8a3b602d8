"""What happens when an agent has used what it may use: its turns, or its budget."""

from __future__ import annotations

from weft.agents.spec import AgentSpec
from weft.authoring.agents.conversations import service_here
from weft.authoring.agents.operations import QuestionOrder, ask_people, loop_scope
from weft.authoring.context import Context
from weft.core import commands as c
from weft.core.ids import RunId
from weft.errors import BudgetExceeded

NO_MORE = "You cannot call tools any more. Answer now, with what you know."
TURNS_MORE_MAX = 1_000
TIMEOUT_MS = 24 * 3600 * 1000


async def ask_for_turns(spec: AgentSpec, why: str) -> int:
    """Ask people for more turns, and return how many they allow; 0 for none."""
    form = {
        "type": "object",
        "properties": {
            "turns": {
                "type": "integer",
                "minimum": 1,
                "maximum": TURNS_MORE_MAX,
                "default": spec.turns,
                "title": "Turns",
            }
        },
        "required": ["turns"],
        "additionalProperties": False,
    }
    answer = await ask_people(
        QuestionOrder(
            place="more",
            title=f"{spec.agent} needs more turns",
            about={"agent": spec.agent, "why": why},
            form=form,
            of=spec.approvers,
            timeout_ms=TIMEOUT_MS,
        )
    )
    if not answer.approved:
        return 0
    return int(answer.form["turns"]) if isinstance(answer.form, dict) else spec.turns


async def ask_for_budget(ctx: Context, spec: AgentSpec, short: BudgetExceeded) -> bool:
    """Ask people for more of what is used up, and add what they allow. Returns whether they did.

    A limit of a run above is raised there: whoever agrees without an amount has done so. Nobody is asked about a limit
    of the policy, because no answer would raise it.
    """
    if short.per:
        return False
    state = loop_scope().driver.machine.state
    own = state.budget
    is_own = own is not None and short.unit in own.limits
    amount = {"type": "integer", "minimum": 1, "default": max(short.wanted, 1), "title": f"More of {short.unit}"}
    form = {"type": "object", "properties": {"amount": amount}, "required": ["amount"], "additionalProperties": False}
    answer = await ask_people(
        QuestionOrder(
            place="budget",
            title=f"{spec.agent} needs a larger budget",
            about={"agent": spec.agent, "why": short.message, "unit": short.unit, "wanted": short.wanted},
            form=form if is_own else None,
            of=tuple(own.of) if own is not None and own.of else spec.approvers,
            timeout_ms=TIMEOUT_MS,
        )
    )
    if not answer.approved:
        return False
    if is_own and isinstance(answer.form, dict):
        service, run_id = service_here(), RunId(state.run_id)
        added, by = {short.unit: int(answer.form["amount"])}, ", ".join(answer.by)
        key = f"{state.uid}/{loop_scope().prefix}budget"

        async def raise_budget() -> None:
            command = c.RaiseBudget(added=added, reason=answer.reason, by=by)
            await service().tell(run_id, command, key=key)

        await ctx.step("raise", raise_budget)
    return True
