"""Perform a tool: a step as itself, a workflow or agent as a child run, an MCP or built-in tool as a built-in step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec

from weft.agents.conversation import HeldBlob
from weft.agents.toolbox.definitions import OPERATION
from weft.agents.toolbox.openapi import ApiOperation
from weft.agents.tools.spec import ToolSpec
from weft.authoring.agents.agent import mark_tainted
from weft.authoring.agents.approval import WantedCall
from weft.authoring.agents.covers import tool_cover
from weft.authoring.agents.offered import schema_now
from weft.authoring.agents.operations import StoredResult, TaskOrder, child_output, perform_task
from weft.authoring.policies import policy_of
from weft.authoring.runnable import Invocation, Runnable
from weft.authoring.steps import Step
from weft.core import values
from weft.core.budgets import Amounts, Cover
from weft.core.events import Effect, Policy
from weft.errors import BadValue, WeftError
from weft.steps.failures import failure_of

MCP = "weft.mcp"
"""The built-in step that calls a tool of an MCP server."""


class _AnswerOnly(msgspec.Struct):
    output: msgspec.Raw


class ToolGroup(Protocol):
    """What is registered where a run of an agent runs."""

    def find_step(self, name: str) -> Step[Any, Any] | None: ...

    def newest(self, name: str) -> Runnable[Any] | None: ...


class ToolPerformer:
    """Performs tools with what is registered now."""

    def __init__(self, group: ToolGroup, agent: str, spec: HeldBlob) -> None:
        self._group = group
        self._agent = agent
        self._spec = spec

    def misfit(self, wanted: WantedCall) -> Any:
        """Return why a call cannot be performed with what is registered now; empty if it can."""
        tool = wanted.tool
        check: Callable[[Mapping[str, Any]], bytes]
        if tool.kind in ("step", "pipeline"):
            step = self._group.find_step(tool.target)
            if step is None:
                return f"{tool.name} is no longer there."
            check = partial(step.signature.from_mapping, what=tool.name)
        elif tool.kind in ("workflow", "agent"):
            runnable = self._group.newest(tool.target)
            if runnable is None:
                return f"{tool.name} is no longer there."
            check = runnable.given
        else:
            return ""
        try:
            check(wanted.arguments)
        except BadValue as error:
            return error.message
        except WeftError as error:
            return {"type": type(error).__name__, "message": failure_of(error).message}
        return ""

    def schema_of(self, tool: ToolSpec) -> dict[str, Any]:
        """Return the schema of a tool as it is now. It may be another than when the run began."""
        found: Any = None
        if tool.kind in ("step", "pipeline"):
            found = self._group.find_step(tool.target)
        elif tool.kind in ("workflow", "agent"):
            found = self._group.newest(tool.target)
        return schema_now(found, list(tool.bind)) if found is not None else tool.schema

    async def perform(self, wanted: WantedCall) -> StoredResult:
        """Perform a call, or return its recorded result. Raises its failure."""
        tool = wanted.tool
        given = wanted.encoded()
        if tool.kind in ("step", "pipeline"):
            step = self._group.find_step(tool.target)
            if step is None:
                raise BadValue(f"{tool.name} is no longer there.", code="tool.unknown")
            policy = self._for_agent(_with_effect(step.policy, tool.effect))
            return await perform_task(
                TaskOrder(
                    place=step.name,
                    step=step.body.name,
                    given=given,
                    policy=policy,
                    cover=tool_cover(tool.name, policy),
                    undo=step.undo_plan,
                )
            )
        if tool.kind in ("workflow", "agent"):
            runnable = self._group.newest(tool.target)
            if runnable is None:
                raise BadValue(f"{tool.name} is no longer there.", code="tool.unknown")
            given = runnable.given(wanted.arguments)
            if tool.kind == "workflow":
                return await child_output(Invocation(runnable, given))
            return _answer_of(
                await child_output(Invocation(runnable, mark_tainted(given) if wanted.is_tainted else given))
            )
        about = {} if tool.kind == "mcp" else {"agent": self._agent, "spec": self._spec}
        call = values.encode({**about, **tool.given, "arguments": wanted.arguments})
        step_name = MCP if tool.kind == "mcp" else tool.target
        policy = self._for_agent(policy_of(effect=tool.effect))
        cover = tool_cover(tool.name, policy)
        return await perform_task(TaskOrder(place=tool.name, step=step_name, given=call, policy=policy, cover=cover))

    async def with_operation(self, wanted: WantedCall) -> WantedCall:
        """Return the call of an API with the operation that its document has, and with the effect of that."""
        call = values.encode({"agent": self._agent, "arguments": wanted.arguments})
        policy = self._for_agent(policy_of(effect="idempotent"))
        found = await perform_task(
            TaskOrder(place="operation", step=OPERATION, given=call, policy=policy, cover=Cover(amounts=Amounts()))
        )
        operation = msgspec.json.decode(found.raw, type=ApiOperation)
        given = {**wanted.tool.given, "operation": msgspec.to_builtins(operation)}
        effect = wanted.tool.effect if wanted.tool.effect == "irreversible" else operation.effect
        sends = ("outside",) if effect == "irreversible" and "outside" not in wanted.tool.touches else ()
        tool = msgspec.structs.replace(wanted.tool, effect=effect, given=given, touches=(*wanted.tool.touches, *sends))
        return msgspec.structs.replace(wanted, tool=tool)

    def _for_agent(self, policy: Policy) -> Policy:
        """Return the policy of a task that may do only what is permitted to this agent."""
        return msgspec.structs.replace(policy, agent=self._agent)


def _with_effect(policy: Policy, effect: Effect) -> Policy:
    """Return the policy of a step that is offered with another effect than its own."""
    if policy.effect == effect:
        return policy
    attempts = 1 if effect == "irreversible" else policy.attempts_max
    return msgspec.structs.replace(policy, effect=effect, attempts_max=attempts)


def _answer_of(result: StoredResult) -> StoredResult:
    """Return what an agent answered, without what that took; or what people have set in its place."""
    try:
        return StoredResult(bytes(msgspec.json.decode(result.raw, type=_AnswerOnly).output))
    except msgspec.ValidationError:
        return result
