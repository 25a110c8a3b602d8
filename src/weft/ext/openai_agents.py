"""Run agents of the OpenAI Agents SDK in workflows: their model and tool calls are steps, which are never repeated.

    helper = durable(Agent(name="support", tools=[find_order, refund]), effects={"refund": "irreversible"})

    @app.workflow
    async def support(ctx: weft.Context, message: str) -> str:
        return (await Runner.run(helper, message)).final_output

Needs the extra ``weft[openai-agents]``. Outside a workflow the agent runs as usual.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from weft.agents.models.prices import Prices
from weft.authoring.agents.framework_calls import DEFAULT_TIMEOUT, FrameworkAnswer, FrameworkCalls, is_in_workflow
from weft.authoring.policies import Duration
from weft.core import values
from weft.core.events import Effect
from weft.errors import UsageError
from weft.extras import require
from weft.ports.models import ModelUsage
from weft.steps.task import task

require("openai-agents", "weft.ext.openai_agents")

import agents  # noqa: E402
from agents.models.interface import Model  # noqa: E402
from agents.models.multi_provider import MultiProvider  # noqa: E402
from agents.tool_context import ToolContext  # noqa: E402
from pydantic import TypeAdapter  # noqa: E402

Given = TypeVar("Given")

_response = TypeAdapter(agents.ModelResponse)
_outputs: TypeAdapter[Any] = TypeAdapter(
    agents.ToolOutputText
    | agents.ToolOutputImage
    | agents.ToolOutputFileContent
    | list[agents.ToolOutputText | agents.ToolOutputImage | agents.ToolOutputFileContent]
)
_OF_PROVIDER = (
    agents.CodeInterpreterTool,
    agents.FileSearchTool,
    agents.HostedMCPTool,
    agents.ImageGenerationTool,
    agents.ToolSearchTool,
    agents.WebSearchTool,
)
"""Tools that the provider performs within the model call."""


def durable(
    agent: agents.Agent[Given],
    *,
    effects: Mapping[str, Effect] | None = None,
    approvers: Iterable[str] = (),
    prices: Prices | None = None,
    timeout: Duration = DEFAULT_TIMEOUT,
) -> agents.Agent[Given]:
    """Return the agent, and those it hands over to, with model and tool calls that are steps of a workflow.

    Args:
        agent: An agent. It is not changed.
        effects: The effects of tools by name. Others are idempotent.
        approvers: Who is asked before an irreversible tool is called.
        prices: What the model costs, for budgets of money.
        timeout: How long a model call may take.

    Raises:
        UsageError: It is no agent, or is durable already, a tool acts on this machine in a way that cannot be recorded,
            or ``effects`` names an unknown tool.
        BadValue: An effect or the timeout is not valid.
    """
    is_agent = isinstance(agent, agents.Agent)
    FrameworkCalls.check_agent(
        agent, is_agent=is_agent, is_durable=is_agent and isinstance(agent.model, _RecordedModel)
    )
    calls = FrameworkCalls(agent.name, effects=effects, approvers=tuple(approvers), prices=prices, timeout=timeout)
    family = _Family(calls)
    made = family.durable(agent)
    calls.check_tools(family.tools)
    return made


class _Family:
    """Makes an agent durable, and the agents that it hands over to, which may hand back."""

    def __init__(self, calls: FrameworkCalls) -> None:
        self._calls = calls
        self._made: dict[int, tuple[agents.Agent[Any], agents.Agent[Any]]] = {}
        self.tools: set[str] = set()

    def durable(self, agent: agents.Agent[Given]) -> agents.Agent[Given]:
        known = self._made.get(id(agent))
        if known is not None:
            return known[1]
        if isinstance(agent.model, _RecordedModel):
            return agent
        if agent.mcp_servers:
            raise UsageError(
                f"{agent.name} has MCP servers, whose connections cannot be recorded.",
                hint="Use an agent of app.agent(…, tools=[weft.mcp(…)]), or wrap each tool in a function tool.",
            )
        made = agent.clone(
            model=_RecordedModel(agent.model, self._calls),
            tools=[self._tool(agent, tool) for tool in agent.tools],
            handoffs=[],
        )
        self._made[id(agent)] = agent, made
        made.handoffs = [self._handoff(one) for one in agent.handoffs]
        return made

    def _handoff(self, target: Any) -> Any:
        if isinstance(target, agents.Agent):
            return self.durable(target)

        async def invoke(context: Any, given: str) -> Any:
            return self.durable(await target.on_invoke_handoff(context, given))

        return dataclasses.replace(target, on_invoke_handoff=invoke)

    def _tool(self, agent: agents.Agent[Any], tool: Any) -> Any:
        if isinstance(tool, _OF_PROVIDER):
            return tool
        if not isinstance(tool, agents.FunctionTool):
            raise UsageError(
                f"The tool {tool.name} of {agent.name} is a {type(tool).__name__}, which cannot be recorded.",
                hint="Write it as a function tool.",
            )
        self.tools.add(tool.name)
        inner = tool._agent_instance  # noqa: SLF001 - there is no other way to see that a tool runs an agent
        if inner is not None:
            if not isinstance(inner.model, _RecordedModel):
                raise UsageError(
                    f"The tool {tool.name} of {agent.name} runs the agent {inner.name}, which is not durable.",
                    hint=f"Write durable({inner.name}).as_tool(…).",
                )
            return tool
        return _durable_tool(tool, self._calls)


def _durable_tool(tool: agents.FunctionTool, calls: FrameworkCalls) -> agents.FunctionTool:
    perform = tool.on_invoke_tool
    effect = calls.effect_of(tool.name)

    async def invoke(context: ToolContext[Any], given: str) -> Any:
        if not is_in_workflow():
            return await perform(context, given)
        refusal = await calls.refusal(tool.name, _arguments(given), effect)
        if refusal is not None:
            return values.encode(refusal).decode()

        async def call() -> dict[str, Any]:
            return _to_json(await perform(context, given))

        return _restored(await calls.call_tool(tool.name, effect, call))

    made = copy.copy(tool)
    made.on_invoke_tool = invoke
    return made


def _arguments(given: str) -> Any:
    try:
        return values.decode(given.encode()) if given.strip() else {}
    except ValueError:
        return given


def _to_json(output: Any) -> dict[str, Any]:
    """Return what a tool returned as JSON. The framework sends what is no part of a message as its text."""
    if isinstance(output, str):
        return {"text": output}
    try:
        return {"parts": _outputs.dump_python(_outputs.validate_python(output), mode="json")}
    except ValueError:
        return {"text": str(output)}


def _restored(recorded: dict[str, Any]) -> Any:
    return recorded["text"] if "text" in recorded else _outputs.validate_python(recorded["parts"])


class _RecordedModel(Model):
    def __init__(self, model: str | Model | None, calls: FrameworkCalls) -> None:
        self._model = model
        self._calls = calls

    def _wrapped(self) -> Model:
        if not isinstance(self._model, Model):
            self._model = MultiProvider().get_model(self._model)
        return self._model

    def _name(self) -> str:
        """Return the provider's name of the model."""
        if self._model is None or isinstance(self._model, str):
            return self._model or "default"
        return str(getattr(self._model, "model", type(self._model).__name__))

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: agents.ModelSettings,
        *more: Any,
        **options: Any,
    ) -> agents.ModelResponse:
        if not is_in_workflow():
            return await self._wrapped().get_response(system_instructions, input, model_settings, *more, **options)

        async def call() -> FrameworkAnswer:
            headers = {**(model_settings.extra_headers or {}), "Idempotency-Key": task().key}
            settings = dataclasses.replace(model_settings, extra_headers=headers)
            response = await self._wrapped().get_response(system_instructions, input, settings, *more, **options)
            usage = response.usage
            cached = usage.input_tokens_details.cached_tokens
            spent = ModelUsage(input=usage.input_tokens, output=usage.output_tokens, cached=cached)
            return FrameworkAnswer(_response.dump_python(response, mode="json"), spent)

        return _response.validate_python(await self._calls.ask_model(self._name(), call))

    def stream_response(self, *arguments: Any, **options: Any) -> Any:
        if not is_in_workflow():
            return self._wrapped().stream_response(*arguments, **options)
        raise UsageError(
            "A durable agent cannot stream its answers in a workflow.",
            hint="Use Runner.run(…) there. An agent of app.agent(…) streams to its run.",
        )
