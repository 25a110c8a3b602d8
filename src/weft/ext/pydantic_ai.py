"""Run agents of pydantic-ai in workflows: their model and tool calls are steps, which are never repeated.

    helper = durable(Agent("openai:gpt-5-mini", tools=[find_order, refund]), effects={"refund": "irreversible"})

    @app.workflow
    async def support(ctx: weft.Context, message: str) -> str:
        return (await helper.run(message)).output

Needs the extra ``weft[pydantic-ai]``. Outside a workflow the agent runs as usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from weft.agents.models.prices import Prices
from weft.authoring.agents.framework_calls import DEFAULT_TIMEOUT, FrameworkAnswer, FrameworkCalls, is_in_workflow
from weft.authoring.agents.operations import loop_scope
from weft.authoring.policies import Duration
from weft.core.events import Effect
from weft.errors import UsageError
from weft.extras import require
from weft.ports.models import ModelUsage
from weft.steps.task import task

require("pydantic-ai", "weft.ext.pydantic_ai")

from pydantic import TypeAdapter  # noqa: E402
from pydantic_ai import FunctionToolset, ModelRetry, RunContext, ToolReturn  # noqa: E402
from pydantic_ai.agent import AbstractAgent, WrapperAgent  # noqa: E402
from pydantic_ai.capabilities import AbstractCapability  # noqa: E402
from pydantic_ai.capabilities.abstract import CapabilityOrdering  # noqa: E402
from pydantic_ai.durable_exec import conversation_id_from_run_id  # noqa: E402
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed  # noqa: E402
from pydantic_ai.messages import ModelMessage, ModelResponse, tool_return_content_ta  # noqa: E402
from pydantic_ai.models import Model, ModelRequestParameters  # noqa: E402
from pydantic_ai.models.wrapper import WrapperModel  # noqa: E402
from pydantic_ai.settings import ModelSettings  # noqa: E402
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset  # noqa: E402

Deps = TypeVar("Deps")
Output = TypeVar("Output")

_response = TypeAdapter(ModelResponse)
_tool_return: TypeAdapter[ToolReturn[Any]] = TypeAdapter(ToolReturn[Any])


def durable(
    agent: AbstractAgent[Deps, Output],
    *,
    effects: Mapping[str, Effect] | None = None,
    approvers: Iterable[str] = (),
    prices: Prices | None = None,
    timeout: Duration = DEFAULT_TIMEOUT,
) -> WrapperAgent[Deps, Output]:
    """Return the agent as one whose model and tool calls are steps of the workflow that runs it.

    Args:
        agent: An agent. It is not changed.
        effects: The effects of tools by name, before ``metadata={"effect": …}`` of the tool. Others are idempotent.
        approvers: Who is asked before an irreversible tool is called.
        prices: What the model costs, for budgets of money.
        timeout: How long a model call may take.

    Raises:
        UsageError: It is no agent, or is durable already, or ``effects`` names a tool that it does not have.
        BadValue: An effect or the timeout is not valid.
    """
    FrameworkCalls.check_agent(
        agent, is_agent=isinstance(agent, AbstractAgent), is_durable=isinstance(agent, _DurableAgent)
    )
    calls = FrameworkCalls(
        agent.name or "agent", effects=effects, approvers=tuple(approvers), prices=prices, timeout=timeout
    )
    known = _known_tools(agent)
    if known is not None:
        calls.check_tools(known)
    return _DurableAgent(agent, calls)


def _known_tools(agent: AbstractAgent[Any, Any]) -> set[str] | None:
    """Return the names of the agent's tools; None if they are known only while it runs."""
    if not all(isinstance(toolset, FunctionToolset) for toolset in agent.toolsets):
        return None
    return {name for toolset in agent.toolsets if isinstance(toolset, FunctionToolset) for name in toolset.tools}


class _DurableAgent(WrapperAgent[Deps, Output]):
    def __init__(self, wrapped: AbstractAgent[Deps, Output], calls: FrameworkCalls) -> None:
        super().__init__(wrapped)
        self._calls = calls

    def iter(self, user_prompt: Any = None, **options: Any) -> Any:
        if not is_in_workflow():
            return self.wrapped.iter(user_prompt, **options)
        capabilities = [*(options.pop("capabilities", None) or ()), _Durability(self._calls)]
        return self.wrapped.iter(user_prompt, capabilities=capabilities, **options)

    def run_sync(self, *arguments: Any, **options: Any) -> Any:
        _refuse_in_workflow("run_sync")
        return super().run_sync(*arguments, **options)

    def run_stream_sync(self, *arguments: Any, **options: Any) -> Any:
        _refuse_in_workflow("run_stream_sync")
        return super().run_stream_sync(*arguments, **options)


def _refuse_in_workflow(method: str) -> None:
    if is_in_workflow():
        raise UsageError(f"A workflow cannot wait for {method}().", hint="Write await agent.run(…).")


@dataclass
class _Durability(AbstractCapability[Any]):
    """Makes the calls of one run of an agent steps."""

    calls: FrameworkCalls

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_default_run_id(self) -> str:
        scope = loop_scope()
        number = scope.count("agent run", "agent run")
        return f"{scope.driver.machine.state.run_id}:{scope.prefix}{number}"

    def get_default_conversation_id(self, run_id: str) -> str:
        return str(conversation_id_from_run_id(run_id))

    def get_wrapper_model(self, model: Model) -> Model:
        return _DurableModel(model, self.calls)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _DurableToolset(toolset, self.calls)


@dataclass(init=False)
class _DurableModel(WrapperModel):
    def __init__(self, wrapped: Model, calls: FrameworkCalls) -> None:
        super().__init__(wrapped)
        self._calls = calls

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async def call() -> FrameworkAnswer:
            headers = {**(model_settings or {}).get("extra_headers", {}), "Idempotency-Key": task().key}
            settings = ModelSettings(**{**(model_settings or {}), "extra_headers": headers})
            response = await self.wrapped.request(messages, settings, model_request_parameters)
            usage = response.usage
            spent = ModelUsage(input=usage.input_tokens, output=usage.output_tokens, cached=usage.cache_read_tokens)
            return FrameworkAnswer(_response.dump_python(response, mode="json"), spent)

        return _response.validate_python(await self._calls.ask_model(self.wrapped.model_name, call))

    def request_stream(self, *_: Any, **__: Any) -> Any:
        raise UsageError(
            "A durable agent cannot stream its answers in a workflow.",
            hint="Use agent.run(…) there. An agent of app.agent(…) streams to its run.",
        )


@dataclass
class _DurableToolset(WrapperToolset[Any]):
    calls: FrameworkCalls

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        effect = self.calls.effect_of(name, tool.tool_def.metadata)
        refusal = await self.calls.refusal(name, tool_return_content_ta.dump_python(tool_args, mode="json"), effect)
        if refusal is not None:
            return refusal

        async def call() -> dict[str, Any]:
            return await _outcome(super(_DurableToolset, self).call_tool(name, tool_args, ctx, tool))

        return _result(await self.calls.call_tool(name, effect, call))


async def _outcome(call: Any) -> dict[str, Any]:
    """Return the result of a tool as JSON. What it says to the agent by raising is a result, too."""
    try:
        result = await call
    except ModelRetry as error:
        return {"retry": error.message}
    except ToolFailed as error:
        return {"failed": error.message}
    except CallDeferred as error:
        return {"deferred": error.metadata}
    except ApprovalRequired as error:
        return {"approval": error.metadata}
    if isinstance(result, ToolReturn):
        return {"return": _tool_return.dump_python(result, mode="json")}
    return {"value": tool_return_content_ta.dump_python(result, mode="json")}


def _result(outcome: dict[str, Any]) -> Any:
    match outcome:
        case {"retry": message}:
            raise ModelRetry(message)
        case {"failed": message}:
            raise ToolFailed(message)
        case {"deferred": metadata}:
            raise CallDeferred(metadata)
        case {"approval": metadata}:
            raise ApprovalRequired(metadata)
        case {"return": recorded}:
            return _tool_return.validate_python(recorded)
    return tool_return_content_ta.validate_python(outcome["value"])
