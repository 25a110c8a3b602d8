"""The model of a turn: make the conversation shorter if it must be, ask, and count the answer."""

from __future__ import annotations

import msgspec

from weft.agents.failures import AgentFailed
from weft.agents.models.chunks import turn_of
from weft.agents.models.failures import CONTEXT, ModelFailed
from weft.agents.models.step import AskModel, ModelAnswer
from weft.agents.spec import FINAL_OUTPUT, AgentSpec
from weft.authoring.agents.compaction import AIM, NEWEST_RESULTS_KEPT, Pruned, prune, with_summary
from weft.authoring.agents.conversations import StoredConversation, conversations_here
from weft.authoring.agents.model_calls import ModelAsker
from weft.authoring.agents.operations import loop_scope
from weft.authoring.agents.reply import Usage
from weft.authoring.agents.turn_state import TurnState
from weft.authoring.agents.usage import with_answer
from weft.authoring.context import Context

LAST = "answer"
COMPACT = "compact"


class TurnModel:
    """Asks the model of one run."""

    def __init__(self, ctx: Context, spec: AgentSpec, spec_ref: str, asker: ModelAsker) -> None:
        self._ctx = ctx
        self._spec = spec
        self._spec_ref = spec_ref
        self._asker = asker
        self._common = len(msgspec.json.encode(spec.request))

    async def ask(self, state: TurnState) -> tuple[TurnState, ModelAnswer]:
        """Ask for the next answer. Raises ModelFailed, AgentFailed (``agent.context``)."""
        context = self._asker.context
        allowed = int(self._spec.compact * context) if context else 0
        if allowed and self._tokens(state) > allowed:
            aim = int(allowed * AIM * state.chars_per_token(self._common)) - self._common
            state = await self._shorten(state, max(0, aim))
        try:
            return state.after(answer := await self._ask(state)), answer
        except ModelFailed as failed:
            if failed.code != CONTEXT:
                raise
        state = await self._shorten_strictly(state)
        try:
            answer = await self._ask(state)
        except ModelFailed as failed:
            if failed.code != CONTEXT:
                raise
            raise self._too_long(state) from failed
        return state.after(answer), answer

    async def ask_last(self, state: TurnState) -> tuple[TurnState, ModelAnswer]:
        """Ask for an answer without tools."""
        final = tuple(tool for tool in self._spec.request.tools if tool.name == FINAL_OUTPUT)
        call = msgspec.structs.replace(self._call(state), tools=final)
        answer = await self._asker.ask(call, self._tokens(state), LAST)
        return state.after(answer), answer

    async def _ask(self, state: TurnState) -> ModelAnswer:
        return await self._asker.ask(self._call(state), self._tokens(state))

    def _tokens(self, state: TurnState) -> int:
        """Return about how many tokens the next request has."""
        return state.next_tokens(self._common)

    def _call(self, state: TurnState) -> AskModel:
        before = turn_of(loop_scope().prefix) - 1
        return AskModel(
            alias="",
            head=state.head,
            add=state.add,
            turn=state.turn,
            spec=self._spec_ref,
            stream=self._spec.stream,
            is_tainted=state.is_tainted or msgspec.UNSET,
            called=state.called if state.called not in (before, -1) else msgspec.UNSET,
        )

    async def _shorten_strictly(self, state: TurnState) -> TurnState:
        """Make the conversation shorter than what the provider refused."""
        shorter = await self._shorten(state, state.total_chars() // 2, newest=0)
        if shorter.chars >= state.total_chars():
            raise self._too_long(state)
        return shorter

    async def _shorten(self, state: TurnState, chars_max: int, *, newest: int = NEWEST_RESULTS_KEPT) -> TurnState:
        found = conversations_here()

        async def prune_results() -> Pruned:
            return await prune(found(), state.head, state.add, chars_max, newest=newest)

        pruned = await self._ctx.step("prune", prune_results)
        usage, shorter = state.usage, pruned.conversation
        if pruned.to_sum_up is not None:
            usage, summary = await self._sum_up(state, pruned.to_sum_up.head)

            async def put_summary() -> StoredConversation:
                return await with_summary(found(), pruned, summary)

            shorter = await self._ctx.step("summary", put_summary)
        return msgspec.structs.replace(state, head=shorter.head, add=(), chars=shorter.chars, tokens=0, usage=usage)

    async def _sum_up(self, state: TurnState, head: str) -> tuple[Usage, str]:
        """Ask the model for a summary; it is empty if even that request is too long."""
        options = dict(self._spec.request.options)
        call = AskModel(alias="", head=head, turn=state.turn, tools=(), options=options)
        try:
            answer = await self._asker.ask(call, self._tokens(state), COMPACT)
        except ModelFailed as failed:
            if failed.code != CONTEXT:
                raise
            return state.usage, ""
        return with_answer(state.usage, answer), answer.text

    def _too_long(self, state: TurnState) -> AgentFailed:
        message = (
            f"The conversation of the agent {self._spec.agent} is too long for its model, and cannot be shortened."
        )
        return AgentFailed(message, code="agent.context", turn=state.turn)
