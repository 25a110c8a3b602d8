"""The rounds of the loop: ask the model, perform what it wants, and go on until its answer fits."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from weft.agents.failures import AgentFailed
from weft.agents.models.chunks import turn_of
from weft.agents.models.step import AskedCall, ModelAnswer
from weft.agents.spec import FINAL_OUTPUT, AgentSpec
from weft.authoring.agents.child_usage import with_runs_below
from weft.authoring.agents.conversations import conversations_here, service_here, tool_calls_of
from weft.authoring.agents.exhaustion import NO_MORE, ask_for_budget, ask_for_turns
from weft.authoring.agents.operations import emit_chunk, loop_scope
from weft.authoring.agents.outputs import read_output, unfit_object
from weft.authoring.agents.reply import Reply, Stopped, ToolCall, Usage
from weft.authoring.agents.tool_calls import CALLS_MAX, FoundCall, ToolCalls
from weft.authoring.agents.tool_results import CallOutcome, error_outcome
from weft.authoring.agents.turn_model import TurnModel
from weft.authoring.agents.turn_state import TurnState, user_message
from weft.authoring.context import Context
from weft.authoring.results import Again, Done, again, done
from weft.core import values
from weft.core.ids import RunUid
from weft.core.plurals import pluralize
from weft.errors import BranchesFailed, BudgetExceeded, OutcomeUnknown
from weft.ports.models import ModelMessage, ResultPart
from weft.steps.codec import Codec

TOLD_STUCK = "You made the same calls with the same results as before. Try something else, or answer."


class AgentLoop:
    """The loop of one run."""

    def __init__(
        self, ctx: Context, spec: AgentSpec, model: TurnModel, tools: ToolCalls, codec: Codec[Any] | None
    ) -> None:
        """``codec`` is that of the declared type of the output, if the program declares the agent."""
        self._ctx = ctx
        self._spec = spec
        self._model = model
        self._tools = tools
        self._codec = codec

    async def turn(self, state: TurnState) -> Again[TurnState] | Done[Reply[Any]]:
        """Do one turn."""
        self._tools.policy.usage = state.usage
        try:
            state, answer = await self._model.ask(state)
        except BudgetExceeded as short:
            return await self._end_short_of_budget(state, short)
        if answer.finish == "refused":
            said = f": {answer.text[:200]}" if answer.text else ""
            raise self._failed("agent.refused", f"The model refused to answer{said}.", state, answer)
        if not answer.calls or answer.finish == "length" or self._is_final(answer):
            return await self._answered(state, answer)
        return await self._called(state, answer)

    def _is_final(self, answer: ModelAnswer) -> bool:
        """Return whether an answer is the call that ends the loop. Only models without schemas are offered it."""
        is_offered = any(tool.name == FINAL_OUTPUT for tool in self._spec.request.tools)
        return is_offered and any(call.name == FINAL_OUTPUT for call in answer.calls)

    async def _answered(self, state: TurnState, answer: ModelAnswer) -> Again[TurnState] | Done[Reply[Any]]:
        output = read_output(self._spec, answer, self._codec)
        if not output.problem:
            return done(await self._reply(state, output.value))
        misfits = state.misfits + 1
        if misfits > self._spec.repairs:
            return await self._end_without_answer(state, answer, f"in {misfits} turns: {output.problem}")
        add = (*_orphan_results(answer), user_message(output.problem))
        return await self._next(msgspec.structs.replace(state, add=add, misfits=misfits), answer)

    async def _end_without_answer(self, state: TurnState, answer: ModelAnswer, why: str) -> Done[Reply[Any]]:
        """End without a valid answer. One that only chose no valid next node goes where its node says."""
        route = self._spec.route
        given = unfit_object(answer) if route is not None else None
        if route is None or (given is not None and route.is_valid(given.get("next_nodes"))):
            message = f"The agent {self._spec.agent} gave no valid answer {why}"
            raise self._failed("agent.bad_output", message, state, answer)
        if not route.otherwise:
            allowed = ", ".join(route.of)
            message = f"The agent {self._spec.agent} chose no node of {allowed} {why}"
            raise self._failed("agent.bad_route", message, state, answer)
        default = {"next_nodes": list(route.otherwise), "routed": "default"}
        return done(await self._reply(state, {"reasoning": "", **(given or {}), **default}))

    async def _called(self, state: TurnState, answer: ModelAnswer) -> Again[TurnState] | Done[Reply[Any]]:
        found = [self._tools.find(call) for call in answer.calls[:CALLS_MAX]]
        outcomes = await self._perform(state, answer, found)
        digest = _digest(answer.calls, outcomes)
        same = state.same + 1 if digest == state.last else 0
        if same >= self._spec.repeats:
            message = f"The agent {self._spec.agent} made the same calls with the same results {same + 1} times."
            raise self._failed("agent.stuck", message, state, answer)
        has_misfit = any(outcome.is_misfit for outcome in outcomes)
        misfits = state.misfits + 1 if has_misfit else 0
        if misfits > self._spec.repairs:
            told_last = next(outcome.content for outcome in outcomes if outcome.is_misfit)[:500]
            message = f"The agent {self._spec.agent} made calls that are not possible in {misfits} turns: {told_last}"
            raise self._failed("agent.bad_output", message, state, answer)
        state = msgspec.structs.replace(
            state,
            add=(*_results(answer.calls, outcomes), *((user_message(TOLD_STUCK),) if same == 1 else ())),
            called=turn_of(loop_scope().prefix),
            misfits=misfits,
            same=same,
            last=digest,
            is_tainted=state.is_tainted or any(outcome.is_untrusted for outcome in outcomes),
            has_children=state.has_children or any(outcome.is_child for outcome in outcomes),
            used=_count_limited_calls(state.used, found),
            last_ref=next((outcome.ref for outcome in reversed(outcomes) if outcome.ref), state.last_ref),
            usage=msgspec.structs.replace(
                state.usage, tools=state.usage.tools + sum(outcome.is_performed for outcome in outcomes)
            ),
        )
        return await self._next(state, answer)

    async def _perform(
        self, state: TurnState, answer: ModelAnswer, found: Sequence[FoundCall | CallOutcome]
    ) -> list[CallOutcome]:
        """Perform the calls of an answer, ``width`` at once. Results are in the order of the calls."""
        self._tools.policy.usage = state.usage
        slots = asyncio.Semaphore(self._spec.width)
        before: Counter[str] = Counter(state.used)

        async def branch(call: FoundCall | CallOutcome, used: int) -> CallOutcome:
            if isinstance(call, CallOutcome):
                return call
            async with slots:
                return await self._tools.perform(
                    call, answer.text, is_tainted=state.is_tainted, used=used, last=state.last_ref
                )

        branches = {}
        for number, call in enumerate(found):
            name = "" if isinstance(call, CallOutcome) else call[0].name
            branches[str(number)] = branch(call, before[name])
            before[name] += 1
        try:
            ended = await self._ctx.join("tools", branches)
        except BranchesFailed as failed:
            raise _worst_failure(failed) from None
        more = error_outcome(f"At most {CALLS_MAX} calls in one answer are performed. Call it again.", is_misfit=True)
        return [*ended.values(), *(more for _ in answer.calls[CALLS_MAX:])]

    async def _next(self, state: TurnState, answer: ModelAnswer) -> Again[TurnState] | Done[Reply[Any]]:
        if state.turn + 1 < state.turns:
            return again(msgspec.structs.replace(state, turn=state.turn + 1))
        why = f"The agent {self._spec.agent} used its {pluralize(state.turns, 'turn')} without an answer."
        if self._spec.on_exhausted == "ask":
            more = await ask_for_turns(self._spec, why)
            if more:
                return again(msgspec.structs.replace(state, turn=state.turn + 1, turns=state.turns + more))
        if self._spec.on_exhausted == "answer":
            return await self._last_answer(state, "turns")
        raise self._failed("agent.turns", why, state, answer)

    async def _end_short_of_budget(
        self, state: TurnState, short: BudgetExceeded
    ) -> Again[TurnState] | Done[Reply[Any]]:
        """Do what the agent does without enough budget for its next call."""
        if self._spec.on_exhausted == "ask" and await ask_for_budget(self._ctx, self._spec, short):
            return again(state)
        if self._spec.on_exhausted == "answer":
            with contextlib.suppress(BudgetExceeded):
                return await self._last_answer(state, "budget")
        raise short

    async def _last_answer(self, state: TurnState, why: Stopped) -> Done[Reply[Any]]:
        """Ask for an answer once more, without tools."""
        told_so = msgspec.structs.replace(state, add=(*state.add, user_message(NO_MORE)))
        state, answer = await self._model.ask_last(told_so)
        output = read_output(self._spec, answer, self._codec)
        if output.problem:
            raise self._failed("agent.bad_output", f"The last answer does not fit: {output.problem}", state, answer)
        return done(await self._reply(state, output.value, why))

    async def _reply(self, state: TurnState, output: Any, stopped: Stopped = "done") -> Reply[Any]:
        await emit_chunk(self._spec.stream, {"kind": "end", "stopped": stopped})
        usage = await self._usage(state)
        calls: list[ToolCall] = []
        if state.usage.tools:
            found = conversations_here()

            async def tool_calls() -> list[ToolCall]:
                return await tool_calls_of(found(), state.head)

            calls = await self._ctx.step("tool_calls", tool_calls, ephemeral=True)
        return Reply(
            output=output,
            stopped=stopped,
            turns=state.turn + 1,
            usage=usage,
            model=state.model,
            conversation=state.head,
            tool_calls=calls,
        )

    async def _usage(self, state: TurnState) -> Usage:
        """Return what the run used, with the runs below it."""
        if not state.has_children:
            return state.usage
        service, uid = service_here(), RunUid(loop_scope().driver.machine.state.uid)

        async def usage_below() -> Usage:
            return await with_runs_below(service(), uid, state.usage)

        return await self._ctx.step("usage", usage_below, ephemeral=True)

    def _failed(self, code: str, message: str, state: TurnState, answer: ModelAnswer) -> AgentFailed:
        return AgentFailed(message, code=code, turn=state.turn, text=answer.text)


def _count_limited_calls(before: dict[str, int], found: Sequence[FoundCall | CallOutcome]) -> dict[str, int]:
    """Count the calls of tools that may be called only so often, also those inside ``call_tool``."""
    tools = [call[0] for call in found if not isinstance(call, CallOutcome)]
    return dict(Counter(before) + Counter(tool.name for tool in tools if tool.per_run is not None))


def _results(calls: Sequence[AskedCall], outcomes: Sequence[CallOutcome]) -> tuple[ModelMessage, ...]:
    """Return one result for every call, in the order of the calls."""
    return tuple(
        ModelMessage(role="tool", parts=(ResultPart(id=call.id, name=call.name, content=outcome.content),))
        for call, outcome in zip(calls, outcomes, strict=True)
    )


def _orphan_results(answer: ModelAnswer) -> tuple[ModelMessage, ...]:
    """Return results for calls beside an answer that does not fit, so that none is without one."""
    return _results(answer.calls, [error_outcome("This was not performed.")] * len(answer.calls))


def _digest(calls: Sequence[AskedCall], outcomes: Sequence[CallOutcome]) -> str:
    done_ = [[call.name, call.arguments, outcome.content] for call, outcome in zip(calls, outcomes, strict=True)]
    return values.digest(msgspec.json.encode(done_))


def _worst_failure(failed: BranchesFailed) -> Exception:
    """Return the failure that ends the run: an unknown outcome before any other."""
    errors = list(failed.errors.values())
    return next((error for error in errors if isinstance(error, OutcomeUnknown)), errors[0])
