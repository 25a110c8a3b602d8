"""Whether a tool call may be performed: what the policy says, and what people say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from weft.agents.policy.verdicts import PolicyVerdict
from weft.agents.spec import AgentSpec
from weft.agents.tools.spec import ToolSpec
from weft.authoring.agents.operations import QuestionOrder, ask_people, emit_chunk
from weft.authoring.results import Answer
from weft.conditions.expressions import compile_expression
from weft.conditions.failures import EvaluationFailed
from weft.core import values
from weft.core.unstorable import to_encodable

APPROVE = "approve"
TIMEOUT_MS = 24 * 3600 * 1000
"""How long an approval is open. Then it counts as a no."""
SAYS_CHARS_MAX = 4_000


class ThroughCall(NamedTuple):
    """A call of ``call_tool`` or ``delegate_to_agent`` with another call inside."""

    name: str
    arguments: dict[str, Any]


class WantedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that can be performed, if it may."""

    tool: ToolSpec
    arguments: dict[str, Any]
    through: tuple[ThroughCall, ...] = ()
    says: str = ""
    """The model's own text beside the call. It is shown to people as quoted and untrusted."""
    is_tainted: bool = False
    """The run has taken in words of strangers."""

    def encoded(self) -> bytes:
        """Return the arguments as they are performed."""
        return values.encode(self.arguments, what=f"{self.tool.name} got")

    def digest(self) -> str:
        """Return the digest of the bytes that are performed, which the question shows."""
        return values.digest(self.encoded())


def needs_approval(spec: AgentSpec, call: WantedCall, verdict: PolicyVerdict) -> bool:
    """Return whether people are asked before a call: the policy, the tool or the agent says so, or the call is risky.

    After words of strangers, every call that sends something outside is asked for.
    """
    if verdict.permission == "ask" or (call.is_tainted and "outside" in call.tool.touches):
        return True
    when = call.tool.approve or spec.approve
    if when in ("always", "never"):
        return when == "always" and call.tool.kind != "person"
    if when == "irreversible":
        return call.tool.effect == "irreversible"
    try:
        arguments = msgspec.to_builtins(call.arguments, enc_hook=to_encodable)
        return bool(compile_expression(when).evaluate({"args": arguments}))
    except EvaluationFailed:
        return True


async def ask_approval(
    spec: AgentSpec, call: WantedCall, verdict: PolicyVerdict, more: Mapping[str, Any] | None = None
) -> Answer[Any]:
    """Ask people whether a call may be performed. The question has the digest of what will run, and ``more``."""
    about = {
        "agent": spec.agent,
        "tool": call.tool.name,
        "arguments": call.arguments,
        "effect": call.tool.effect,
        "digest": call.digest(),
        "says": call.says[:SAYS_CHARS_MAX],
        **(more or {}),
    }
    if verdict.rule:
        about["rule"] = verdict.rule
    await emit_chunk(spec.stream, {"kind": "ask", "tool": call.tool.name, "digest": about["digest"]})
    return await ask_people(
        QuestionOrder(
            place=APPROVE,
            title=f"{spec.agent} wants to call {call.tool.name}",
            about=about,
            form=_change_form(call) if call.tool.editable else None,
            of=verdict.of or spec.approvers,
            timeout_ms=TIMEOUT_MS,
        )
    )


def _change_form(call: WantedCall) -> dict[str, Any]:
    """Return the form in which the arguments may be changed. It begins with those of the call, but for bound ones."""
    shown = {name: value for name, value in call.arguments.items() if name not in call.tool.bind}
    return {**call.tool.schema, "default": shown}
