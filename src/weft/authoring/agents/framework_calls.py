"""Model and tool calls of agents that other frameworks run: each is a step of the workflow that runs the agent.

A framework's own loop runs in the workflow's code. Its calls are performed as inline steps, outside the private loop,
and only their results come back. So a result that is recorded is never asked for again.
"""

from __future__ import annotations

import contextvars
import re
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Raw

from weft.agents.models.prices import Prices
from weft.authoring.agents.approval import TIMEOUT_MS
from weft.authoring.agents.operations import QuestionOrder, ask_people, is_next_settled, loop_scope
from weft.authoring.agents.permission import RunPolicy
from weft.authoring.inline_steps import perform_inline
from weft.authoring.policies import Duration, Retry, policy_of
from weft.core import commands as c
from weft.core import values
from weft.core.budgets import MILLIONTHS, Amounts, Cover
from weft.core.events import Effect, Policy
from weft.errors import Critical, NotAllowed, StepFailed, UsageError
from weft.ports.models import ModelUsage
from weft.runtime.policy import DENIED
from weft.runtime.run.driver import current_scope
from weft.steps.codec import Codec
from weft.steps.failures import recorded_hint
from weft.steps.task import STEP_TRACE, task

DEFAULT_TIMEOUT = "2m"
"""How long a model call may take."""
MODEL_RETRIES = Retry(4, "exponential", "1s", "30s")
_TRANSIENT = (408, 409, 425, 429)
_OWN_VARIABLES = "weft_"
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_ANY: Codec[Any] = Codec.of(Any)


class FrameworkAnswer(msgspec.Struct, frozen=True):
    """The answer of a model as JSON, and what it took."""

    value: Any
    usage: ModelUsage


class FrameworkCalls:
    """Performs the calls of one agent of another framework."""

    def __init__(
        self,
        agent: str,
        *,
        effects: Mapping[str, Effect] | None = None,
        approvers: tuple[str, ...] = (),
        prices: Prices | None = None,
        timeout: Duration = DEFAULT_TIMEOUT,
    ) -> None:
        """``effects`` are by the name of the tool. Raises BadValue."""
        self.agent = agent
        self._effects = dict(effects or {})
        self._approvers = approvers
        self._prices = prices
        self._model_policy = policy_of(retries=MODEL_RETRIES, timeout=timeout)
        for effect in self._effects.values():
            policy_of(effect=effect)

    @staticmethod
    def check_agent(agent: Any, *, is_agent: bool, is_durable: bool) -> None:
        """Raise UsageError if this cannot be made durable: it is no agent of the framework, or is durable already."""
        if not is_agent:
            raise UsageError(f"durable() takes an agent, not a {type(agent).__name__}.")
        if is_durable:
            raise UsageError(f"The agent {agent.name} is durable already.", hint="Wrap it once, with all options.")

    def check_tools(self, known: set[str]) -> None:
        """Raise UsageError if an effect is given to a tool that the agent does not have."""
        for name in sorted(self._effects.keys() - known):
            raise UsageError(
                f'effects= names the tool "{name}", which {self.agent} does not have.',
                hint=f"Its tools are: {', '.join(sorted(known)) or 'none'}.",
                code="tool.unknown",
            )

    def effect_of(self, tool: str, metadata: Mapping[str, Any] | None = None) -> Effect:
        """Return the effect of a tool: what ``effects`` says, else what its metadata says, else idempotent."""
        found = self._effects.get(tool) or (metadata or {}).get("effect") or "idempotent"
        return policy_of(effect=found).effect

    async def ask_model(self, model: str, call: Callable[[], Awaitable[FrameworkAnswer]]) -> Any:
        """Ask a model, or return its recorded answer. What it took is charged to the budgets of the run.

        ``model`` is the provider's name of it, which rules of policies name.
        """
        self._check_prices()
        check = self._policy().call_check(model, self._prices.currency if self._prices is not None else "")

        async def body() -> Any:
            check()
            try:
                answer = await call()
            except Exception as error:
                if _is_final(error):
                    raise Critical(f"{type(error).__name__}: {error}") from error
                raise
            self._spend(answer.usage)
            if (trace := STEP_TRACE.get(None)) is not None:
                trace.note(
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.agent.name": self.agent,
                        "gen_ai.usage.input_tokens": answer.usage.input,
                        "gen_ai.usage.output_tokens": answer.usage.output,
                    }
                )
            return answer.value

        try:
            return await self._perform("model", body, self._model_policy, Amounts(calls=1))
        except StepFailed as failed:
            if failed.failure.code != DENIED:
                raise
            hint = recorded_hint(failed.failure)
            raise NotAllowed(failed.failure.message, hint=hint, code=DENIED) from failed

    async def refusal(self, tool: str, arguments: Any, effect: Effect) -> dict[str, Any] | None:
        """Return why a tool may not be called, to be told to the model; None if it may.

        The policy is asked, and people are, before a tool that is irreversible or for which the policy says so.
        """
        named = arguments if isinstance(arguments, dict) else {"input": arguments}
        raw = values.encode(named, what=f"{tool} got")
        given = values.decode(raw)
        policy = self._policy()
        verdict = await policy.tool_verdict(tool, given)
        if verdict.permission == "deny":
            return {"error": "not permitted", **({"rule": verdict.rule} if verdict.rule else {})}
        if verdict.permission != "ask" and effect != "irreversible":
            return None
        about = {
            "agent": self.agent,
            "tool": tool,
            "arguments": given,
            "effect": effect,
            "digest": values.digest(raw),
        }
        place = f"approve {place_of(tool)}"
        is_new = not is_next_settled(place)
        answer = await ask_people(
            QuestionOrder(
                place=place,
                title=f"{self.agent} wants to call {tool}",
                about=about,
                of=verdict.of or self._approvers,
                timeout_ms=TIMEOUT_MS,
            )
        )
        if answer.approved:
            return None
        if is_new:
            policy.count_refusal(tool)
        return {"error": "a person said no", "reason": answer.reason}

    async def call_tool(self, tool: str, effect: Effect, call: Callable[[], Awaitable[Any]]) -> Any:
        """Call a tool, or return its recorded result. An exception of the tool is not retried here."""
        policy = policy_of(retries=0, effect=effect)
        return await self._perform(f"tool {place_of(tool)}", call, policy, Amounts(tools=1, per_tool={tool: 1}))

    def _policy(self) -> RunPolicy:
        """Return the policy for the agent. Conditions about what it has spent fail: nobody knows that."""
        policy = RunPolicy(loop_scope().driver.program.service, self.agent)
        policy.usage = None
        return policy

    def _check_prices(self) -> None:
        currency = loop_scope().driver.machine.state.currency
        if currency and (self._prices is None or self._prices.currency != currency):
            raise UsageError(
                f"A budget of the run or of one above limits money in {currency}, "
                f"and the model of {self.agent} has no prices in it.",
                hint=f'Pass them: durable(…, prices=weft.Prices("0.25", "2.00", currency="{currency}")).',
                code="budget.no_price",
            )

    def _spend(self, usage: ModelUsage) -> None:
        tokens, prices = usage.input + usage.output, self._prices
        if prices is None:
            task().spend(tokens=tokens)
        else:
            money = Decimal(prices.cost(usage)) / MILLIONTHS
            task().spend(tokens=tokens, money=money, currency=prices.currency)

    async def _perform(self, name: str, call: Callable[[], Awaitable[Any]], policy: Policy, cost: Amounts) -> Any:
        scope = loop_scope()
        variables = contextvars.copy_context()
        policy = msgspec.structs.replace(policy, agent=self.agent)

        async def body() -> Any:
            _take_over(variables)
            return await call()

        def ask(n: int) -> c.ScheduleTask:
            return c.ScheduleTask(
                scope.prefix,
                name,
                n,
                name,
                Raw(b"{}"),
                "",
                policy,
                inline=True,
                passed=scope.driver.passed(scope, policy),
                cover=Cover(amounts=cost),
            )

        return await perform_inline(scope, name, body, _ANY, ask)


def is_in_workflow() -> bool:
    """Return whether the caller is the code of a workflow. Elsewhere an agent runs as its framework runs it."""
    return current_scope() is not None


def place_of(tool: str) -> str:
    """Return the name of a tool as a part of a place."""
    return _NO_NAME.sub("_", tool)[:64] or "_"


def _take_over(variables: contextvars.Context) -> None:
    """Set the context variables that the framework had set where it made the call, but not Weft's own."""
    present = contextvars.copy_context()
    for variable, value in variables.items():
        if variable not in present and not variable.name.startswith(_OWN_VARIABLES):
            variable.set(value)


def _is_final(error: Exception) -> bool:
    """Return whether the provider has refused a request for good. The clients of all providers have this attribute."""
    status = getattr(error, "status_code", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in _TRANSIENT
