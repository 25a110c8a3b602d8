"""One branch of a turn: find the tool, bind, ask the policy and people, perform, and tell the model the result.

What replay must not decide again is recorded at its own place: the verdict of the policy, the answer of people, the
task or child run. So what siblings were answered is never asked again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from weft.agents.models.step import AskedCall
from weft.agents.policy.verdicts import PolicyVerdict
from weft.agents.spec import AgentSpec
from weft.agents.toolbox.calls import InnerCall, checked_call, inner_call, unoffered_tool
from weft.agents.toolbox.definitions import INTERPRETER, OPENAPI, PATCH
from weft.agents.tools.spec import ToolSpec
from weft.authoring.agents.agent import fill_template
from weft.authoring.agents.approval import ThroughCall, WantedCall, needs_approval
from weft.authoring.agents.covers import tool_cover
from weft.authoring.agents.exhaustion import ask_for_budget
from weft.authoring.agents.offered import only_allowed
from weft.authoring.agents.operations import (
    QuestionOrder,
    ask_people,
    cover_call,
    emit_chunk,
    is_recorded,
    loop_scope,
)
from weft.authoring.agents.patch_tool import patch_workflow
from weft.authoring.agents.performers import ToolPerformer
from weft.authoring.agents.permission import POLICY, RunPolicy
from weft.authoring.agents.server_questions import answer_server
from weft.authoring.agents.tool_results import CallOutcome, error_outcome, failed, result_for_model
from weft.authoring.context import Context
from weft.authoring.results import Answer
from weft.core import values
from weft.core.run.children import AGENTS_MAX, agent_depth_of, agent_too_deep
from weft.core.run.repeats import is_in_doubt
from weft.errors import (
    BadValue,
    BudgetExceeded,
    LimitExceeded,
    NotAllowed,
    OutcomeUnknown,
    RunCancelled,
    RunFailed,
    StepFailed,
    TimedOut,
    WeftError,
)
from weft.runtime.schema_check import schema_findings
from weft.steps.failures import failure_of, recorded
from weft.steps.task import TOOL

ARGUMENTS_BYTES_MAX = 64 * 1024
CHILDREN = ("agent", "workflow")
"""The kinds of tools that are performed as child runs."""
CALLS_MAX = 32
"""How many calls of one answer are performed. The others are told back."""
_TOLD = (StepFailed, RunFailed, RunCancelled, TimedOut, NotAllowed, BadValue)
"""What a tool may raise that the model can react to."""


class FoundCall(NamedTuple):
    """The tool that a call means, and its arguments."""

    tool: ToolSpec
    arguments: dict[str, Any]
    through: tuple[ThroughCall, ...] = ()
    """The calls of ``call_tool`` and ``delegate_to_agent`` around it. The policy is asked about them, too."""


_encode = msgspec.json.Encoder().encode


class ToolCalls:
    """Performs the tool calls of one run of an agent."""

    def __init__(
        self, ctx: Context, spec: AgentSpec, inputs: dict[str, Any], performer: ToolPerformer, policy: RunPolicy
    ) -> None:
        self._ctx = ctx
        self._spec = spec
        self._inputs = inputs
        self._performer = performer
        self.policy = policy

    async def perform(self, found: FoundCall, says: str, *, is_tainted: bool, used: int, last: str = "") -> CallOutcome:
        """Perform a call that ``find`` has found, in a scope of its own.

        ``used``: how often the run has called this tool before. ``last``: the reference to its newest result.
        """
        try:
            tool, arguments = checked_call(found.tool, found.arguments, last)
        except WeftError as error:
            return error_outcome(f"{error.message} {error.hint}".strip(), is_misfit=True)
        if tool.per_run is not None and used >= tool.per_run:
            return error_outcome(f"{tool.name} may be called {tool.per_run} times in a run, and was.")
        bound = {name: fill_template(value, self._inputs) for name, value in tool.bind.items()}
        wanted = WantedCall(
            tool=tool, arguments={**arguments, **bound}, through=found.through, says=says, is_tainted=is_tainted
        )
        if tool.kind == "builtin" and tool.target == f"{TOOL}{PATCH}":
            return await self._patch(wanted)
        judged = await self._judge(wanted)
        return judged if isinstance(judged, CallOutcome) else await self._permitted(*judged)

    async def _judge(self, wanted: WantedCall) -> tuple[WantedCall, PolicyVerdict] | CallOutcome:
        """Check a call against what is registered now, and ask the policy about it."""
        tool = wanted.tool
        if not is_recorded(POLICY):
            problem = self._performer.misfit(wanted)
            if problem:
                return error_outcome(problem, is_misfit=True)
            if tool.kind == "agent" and agent_depth_of(loop_scope().driver.machine.state) >= AGENTS_MAX:
                return _not_started(tool, agent_too_deep(tool.target))
        verdict = await self.policy.tool_verdict(tool.name, wanted.arguments, wanted.through)
        if verdict.permission == "deny":
            return error_outcome("not permitted", rule=verdict.rule) if verdict.rule else error_outcome("not permitted")
        if tool.kind == "builtin" and tool.target == f"{TOOL}{OPENAPI}":
            try:
                wanted = await self._performer.with_operation(wanted)
            except _TOLD as error:
                return _failed_call(tool, error)
        return wanted, verdict

    def find(self, call: AskedCall) -> FoundCall | CallOutcome:
        """Return the tool that a call means, and its arguments; or what the model is told if there is none."""
        tool = self._spec.tool(call.name)
        if tool is None:
            names = ", ".join(sorted(one.name for one in self._spec.tools)) or "none"
            return error_outcome(f'There is no tool "{call.name[:100]}". The tools are: {names}.', is_misfit=True)
        if len(call.arguments.encode()) > ARGUMENTS_BYTES_MAX:
            return error_outcome(f"The arguments have more than {ARGUMENTS_BYTES_MAX:,} bytes.", is_misfit=True)
        try:
            arguments = values.decode(call.arguments.encode()) if call.arguments.strip() else {}
            values.encode(arguments, what="The arguments have")
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return error_outcome(f"The arguments are not JSON: {error}", is_misfit=True)
        except WeftError as error:
            return error_outcome(error.message, is_misfit=True)
        if not isinstance(arguments, dict):
            return error_outcome("The arguments must be a JSON object.", is_misfit=True)
        shown = {name: value for name, value in arguments.items() if name not in tool.bind}
        findings = schema_findings(tool.schema, _encode(shown)) if tool.schema else []
        if findings:  # the program may have another tool by now than when the run began
            findings = schema_findings(self._performer.schema_of(tool), _encode(shown))
        if findings:
            return error_outcome("The arguments do not fit the schema.", is_misfit=True, findings=findings[:10])
        inner = inner_call(tool, shown)
        if inner is None:
            return FoundCall(tool, shown)
        found = self._find_inner(call, inner)
        if isinstance(found, CallOutcome):
            return found
        return found._replace(through=(ThroughCall(tool.name, shown), *found.through))

    def _find_inner(self, call: AskedCall, inner: InnerCall) -> FoundCall | CallOutcome:
        """Find the tool of an inner call."""
        offered = self._spec.tool(inner.name)
        target = unoffered_tool(inner, offered)
        if target is not None:
            if not only_allowed([target], self._spec.allowed_tools):
                return error_outcome("not permitted: this agent may not call it here", is_misfit=True)
            findings = schema_findings(target.schema, _encode(inner.arguments)) if target.schema else []
            if findings:
                return error_outcome("The arguments do not fit the schema.", is_misfit=True, findings=findings[:10])
            return FoundCall(target, inner.arguments)
        if inner.is_delegated and (offered is None or offered.kind not in ("agent", "workflow")):
            names = [tool.name for tool in self._spec.tools if tool.kind in ("agent", "workflow")]
            return error_outcome("unknown_agent", is_misfit=True, agents=[*sorted(names), INTERPRETER])
        if inner.name == call.name:
            return error_outcome(f"{call.name} cannot call itself.", is_misfit=True)
        return self.find(AskedCall(id=call.id, name=inner.name, arguments=_encode(inner.arguments).decode()))

    async def _permitted(self, wanted: WantedCall, verdict: PolicyVerdict) -> CallOutcome:
        note: dict[str, Any] = {}
        while needs_approval(self._spec, wanted, verdict):
            answer = await self.policy.approval(self._spec, wanted, verdict)
            if not answer.approved:
                return error_outcome("a person said no", reason=answer.reason)
            changed = _changed_arguments(wanted, answer)
            if changed == wanted.arguments:
                break
            note = {"changed_by": ", ".join(answer.by), "performed_with": changed}
            judged = await self._judge_change(wanted, changed)
            if isinstance(judged, CallOutcome):
                return judged
            asked, (wanted, verdict) = verdict, judged
            if verdict.permission != "ask" or verdict.of == asked.of:
                break  # nobody else has to agree to the change
        return await self._perform(wanted, note)

    async def _judge_change(
        self, wanted: WantedCall, changed: dict[str, Any]
    ) -> tuple[WantedCall, PolicyVerdict] | CallOutcome:
        """Check a call again that an approver has changed."""
        try:
            tool, arguments = checked_call(wanted.tool, changed, "")
        except WeftError as error:
            return error_outcome(f"The change of the arguments is not valid: {error.message}")
        judged = await self._judge(msgspec.structs.replace(wanted, tool=tool, arguments=arguments))
        return msgspec.structs.replace(judged, is_misfit=False) if isinstance(judged, CallOutcome) else judged

    async def _patch(self, wanted: WantedCall) -> CallOutcome:
        try:
            return await patch_workflow(self._ctx, self._spec, wanted, self.policy)
        except BudgetExceeded as short:
            refused = await self._not_covered(wanted.tool, short)
            return refused or error_outcome("The budget was too small, and is larger now. Call it again.")

    async def _perform(self, wanted: WantedCall, note: dict[str, Any]) -> CallOutcome:
        """Perform a permitted call, again if people give the budget for it."""
        while True:
            try:
                return await self._perform_once(wanted, note)
            except BudgetExceeded as short:
                refused = await self._not_covered(wanted.tool, short)
                if refused is not None:
                    return refused

    async def _perform_once(self, wanted: WantedCall, note: dict[str, Any]) -> CallOutcome:
        tool = wanted.tool
        try:
            if tool.kind in (*CHILDREN, "person"):
                await cover_call(tool_cover(tool.name))
            if tool.kind == "person":
                return await self._ask_person(wanted)
            result = await self._performer.perform(wanted)
            while tool.kind == "mcp" and (again := await answer_server(self._spec, wanted, result.raw)) is not None:
                wanted = again
                result = await self._performer.perform(wanted)
        except OutcomeUnknown:
            if tool.on_unknown == "fail":
                raise
            return error_outcome("may have happened; do not repeat")
        except RunFailed as error:
            if not is_in_doubt(error.failure):
                return _failed_call(tool, error)
            if tool.on_unknown == "fail":
                raise _unknown_outcome_below(tool, error) from error
            return msgspec.structs.replace(error_outcome("may have happened; do not repeat"), is_child=True)
        except BudgetExceeded:
            raise
        except LimitExceeded as error:
            return _not_started(tool, error)
        except _TOLD as error:
            return _failed_call(tool, error)
        outcome = await result_for_model(result, self._spec.result_bytes, note)
        is_untrusted = "untrusted" in tool.touches
        return msgspec.structs.replace(outcome, is_untrusted=is_untrusted, is_child=tool.kind in CHILDREN)

    async def _not_covered(self, tool: ToolSpec, short: BudgetExceeded) -> CallOutcome | None:
        """Do what the agent does if the budget does not cover a call. Returns None if people have given more."""
        if self._spec.on_exhausted == "fail":
            raise short
        if self._spec.on_exhausted == "ask" and await ask_for_budget(self._ctx, self._spec, short):
            return None
        return error_outcome(f"{tool.name} was not called: {short.message}")

    async def _ask_person(self, wanted: WantedCall) -> CallOutcome:
        choices = wanted.arguments.get("choices") or []
        answer_schema = {"type": "string", "enum": choices} if choices else {"type": "string"}
        form = {"type": "object", "properties": {"answer": answer_schema}, "required": ["answer"]}
        await emit_chunk(self._spec.stream, {"kind": "ask", "tool": wanted.tool.name})
        answer = await ask_people(
            QuestionOrder(
                place=wanted.tool.name,
                title=str(wanted.arguments["question"])[:500],
                about={"agent": self._spec.agent, "question": wanted.arguments["question"], "choices": choices},
                form=form,
                of=wanted.tool.of,
                timeout_ms=wanted.tool.timeout_ms,
            )
        )
        if not answer.approved:
            return error_outcome("nobody answered" if not answer.by else "a person said no", reason=answer.reason)
        said = answer.form.get("answer") if isinstance(answer.form, dict) else None
        told_as = {"answer": said, "by": answer.by, **({"comment": answer.reason} if answer.reason else {})}
        return CallOutcome(_encode(told_as).decode(), is_performed=True)


def _changed_arguments(wanted: WantedCall, answer: Answer[Any]) -> dict[str, Any]:
    """Return the arguments as the approver wants them. Bound ones stay."""
    if not isinstance(answer.form, dict) or not wanted.tool.editable:
        return wanted.arguments
    return {**answer.form, **{name: wanted.arguments[name] for name in wanted.tool.bind}}


def _not_started(tool: ToolSpec, error: LimitExceeded) -> CallOutcome:
    """Tell the model that a limit of the tree of runs is reached, so that nothing was performed."""
    if tool.on_error == "fail":
        raise error
    return msgspec.structs.replace(failed(failure_of(error)), is_performed=False)


def _unknown_outcome_below(tool: ToolSpec, error: RunFailed) -> OutcomeUnknown:
    """Return the error for a child run that failed with a step in it that must not be performed twice."""
    return OutcomeUnknown(
        f"{tool.name} failed, and something in it may have been performed: {error.message.rstrip('. ')}.",
        failure=error.failure,
        hint="Find out whether it was performed, and continue by hand.",
    )


def _failed_call(tool: ToolSpec, error: Exception) -> CallOutcome:
    """Tell the model how a call failed, or raise the error if the program says so.

    The words of the error come from where the result would.
    """
    if tool.on_error == "fail":
        raise error
    outcome = failed(recorded(error) or failure_of(error))
    return msgspec.structs.replace(outcome, is_untrusted="untrusted" in tool.touches, is_child=tool.kind in CHILDREN)
