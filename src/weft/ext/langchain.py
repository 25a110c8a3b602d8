"""Use models and tools of LangChain in workflows: their calls are steps, which are never repeated.

    agent = create_agent(durable(ChatOpenAI(model="gpt-5-mini")), tools=[durable(refund, effect="irreversible")])

    @app.workflow
    async def support(ctx: weft.Context, message: str) -> str:
        state = await agent.ainvoke({"messages": [{"role": "user", "content": message}]})
        return state["messages"][-1].text

Needs the extra ``weft[langchain]``. Outside a workflow models and tools work as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from weft.agents.models.prices import Prices
from weft.authoring.agents.framework_calls import DEFAULT_TIMEOUT, FrameworkAnswer, FrameworkCalls, is_in_workflow
from weft.authoring.agents.operations import loop_scope
from weft.authoring.policies import Duration
from weft.core import values
from weft.core.events import Effect
from weft.errors import BadValue, UsageError
from weft.extras import require
from weft.ports.models import ModelUsage

require("langchain", "weft.ext.langchain")

from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, ToolMessage, messages_from_dict  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langchain_core.tools import BaseTool  # noqa: E402

ModelOrTool = TypeVar("ModelOrTool", bound=BaseChatModel | BaseTool)


def durable(
    given: ModelOrTool,
    *,
    effect: Effect | None = None,
    approvers: Iterable[str] = (),
    prices: Prices | None = None,
    timeout: Duration = DEFAULT_TIMEOUT,
) -> ModelOrTool:
    """Return a chat model or a tool whose calls are steps of the workflow that makes them.

    Args:
        given: A chat model or a tool. It is not changed.
        effect: The effect of the tool, before ``metadata={"effect": …}`` of the tool. Without both it is idempotent.
        approvers: Who is asked before an irreversible tool is called.
        prices: What the model costs, for budgets of money.
        timeout: How long a model call may take.

    Raises:
        UsageError: It is neither a chat model nor a tool, or an option does not apply to it.
        BadValue: The effect or the timeout is not valid.
    """
    if isinstance(given, BaseTool):
        _refuse(given.name, prices=prices)
        said = effect or (given.metadata or {}).get("effect")
        effects = {given.name: said} if said else {}
        return _with_methods(given, _tool_methods(type(given), effects, tuple(approvers)))
    if isinstance(given, BaseChatModel):
        _refuse(type(given).__name__, effect=effect, approvers=tuple(approvers))
        calls = FrameworkCalls(type(given).__name__, prices=prices, timeout=timeout)
        return _with_methods(given, _model_methods(type(given), calls))
    raise UsageError(
        f"durable() takes a chat model or a tool of LangChain, not a {type(given).__name__}.",
        hint="Wrap the model and each tool before you build an agent or a graph of them.",
    )


def _refuse(name: str, **options: Any) -> None:
    for option, value in options.items():
        if value:
            raise UsageError(f"durable({name}, {option}=…): {option} does not apply to it.")


def _with_methods(given: ModelOrTool, methods: dict[str, Callable[..., Any]]) -> ModelOrTool:
    """Return a copy with other methods. It stays an instance of its class, which frameworks look at."""
    kind = type(given)
    made: Any = given.model_copy()
    durable_kind = type(f"Durable{kind.__name__}", (kind,), {"__module__": kind.__module__, **methods})
    object.__setattr__(made, "__class__", durable_kind)
    return made  # type: ignore[no-any-return]


# --- models --------------------------------------------------------------------------------------------------------


def _model_methods(kind: Any, calls: FrameworkCalls) -> dict[str, Callable[..., Any]]:
    async def _agenerate(self: Any, messages: Any, *arguments: Any, **options: Any) -> ChatResult:
        if not is_in_workflow():
            return await kind._agenerate(self, messages, *arguments, **options)  # noqa: SLF001

        async def call() -> FrameworkAnswer:
            result = await kind._agenerate(self, messages, *arguments, **options)  # noqa: SLF001
            return FrameworkAnswer(_recorded_result(result), _usage_of(result))

        return _restored_result(await calls.ask_model(_name_of(self), call))

    def _generate(self: Any, *arguments: Any, **options: Any) -> ChatResult:
        if is_in_workflow():
            raise UsageError("A workflow cannot wait for invoke().", hint="Write await model.ainvoke(…).")
        return kind._generate(self, *arguments, **options)  # noqa: SLF001

    def _should_stream(self: Any, **options: Any) -> bool:
        return not is_in_workflow() and kind._should_stream(self, **options)  # noqa: SLF001

    return {"_agenerate": _agenerate, "_generate": _generate, "_should_stream": _should_stream}


def _name_of(model: BaseChatModel) -> str:
    """Return the provider's name of a model, or else that of its class."""
    names = (getattr(model, name, None) for name in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), type(model).__mro__[1].__name__)


def _usage_of(result: ChatResult) -> ModelUsage:
    message = result.generations[0].message if result.generations else None
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    if usage is None:
        return ModelUsage()
    cached = usage.get("input_token_details", {}).get("cache_read", 0) or 0
    return ModelUsage(input=usage["input_tokens"], output=usage["output_tokens"], cached=cached)


def _recorded_result(result: ChatResult) -> dict[str, Any]:
    return {
        "generations": [
            {"message": _recorded_message(one.message), "info": one.generation_info} for one in result.generations
        ],
        "llm_output": result.llm_output,
    }


def _restored_result(recorded: dict[str, Any]) -> ChatResult:
    generations = [
        ChatGeneration(message=messages_from_dict([one["message"]])[0], generation_info=one["info"])
        for one in recorded["generations"]
    ]
    return ChatResult(generations=generations, llm_output=recorded["llm_output"])


def _recorded_message(message: Any) -> dict[str, Any]:
    return {"type": message.type, "data": message.model_dump(mode="json")}


# --- tools ---------------------------------------------------------------------------------------------------------


def _tool_methods(kind: Any, effects: dict[str, Effect], approvers: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    for_checks = FrameworkCalls("", effects=effects)

    async def ainvoke(self: Any, input: Any, config: Any = None, **options: Any) -> Any:
        if not is_in_workflow():
            return await kind.ainvoke(self, input, config, **options)
        effect = for_checks.effect_of(self.name)
        calls = FrameworkCalls(loop_scope().driver.machine.state.workflow, approvers=approvers)
        refusal = await calls.refusal(self.name, _given_arguments(self, input), effect)
        if refusal is not None:
            return _told(self.name, input, values.encode(refusal).decode())

        async def call() -> dict[str, Any]:
            return _recorded_output(self.name, await kind.ainvoke(self, input, config, **options))

        recorded = await calls.call_tool(self.name, effect, call)
        return messages_from_dict([recorded["message"]])[0] if "message" in recorded else recorded["value"]

    def run(self: Any, *arguments: Any, **options: Any) -> Any:
        _refuse_in_workflow()
        return kind.run(self, *arguments, **options)

    async def arun(self: Any, *arguments: Any, **options: Any) -> Any:
        _refuse_in_workflow()
        return await kind.arun(self, *arguments, **options)

    return {"ainvoke": ainvoke, "run": run, "arun": arun}


def _refuse_in_workflow() -> None:
    if is_in_workflow():
        raise UsageError("A workflow calls a durable tool with ainvoke.", hint="Write await tool.ainvoke(…).")


def _is_tool_call(given: Any) -> bool:
    return isinstance(given, dict) and given.get("type") == "tool_call"


def _given_arguments(tool: BaseTool, given: Any) -> Any:
    """Return the arguments that the model gave, without those that the framework adds."""
    arguments = given["args"] if _is_tool_call(given) else given
    if not isinstance(arguments, dict):
        return arguments
    return {name: value for name, value in arguments.items() if name in tool.args}


def _told(name: str, given: Any, text: str) -> Any:
    return ToolMessage(text, tool_call_id=given["id"], name=name, status="error") if _is_tool_call(given) else text


def _recorded_output(name: str, output: Any) -> dict[str, Any]:
    if isinstance(output, ToolMessage):
        return {"message": _recorded_message(output)}
    try:
        values.encode(output)
    except BadValue as error:
        raise BadValue(
            f"The tool {name} returned what cannot be recorded: {error.message}",
            hint="Return text or other JSON. A tool that returns a Command cannot be durable: leave it as it is.",
        ) from error
    return {"value": output}
