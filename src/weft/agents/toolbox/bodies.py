"""The steps that perform the tools that Weft has itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from weft.agents.conversation import HeldBlob
from weft.agents.spec import decode_spec
from weft.agents.toolbox.definitions import CALL, EXECUTE, INTERPRETER, OPENAPI, OPERATION, READ, SEARCH, STORED
from weft.agents.toolbox.interpreter import interpret_code
from weft.agents.toolbox.openapi_calls import OpenApiCalls, read_operation
from weft.agents.toolbox.results import VALUE_BYTES_MAX, ToolResults, describe_result, part_of
from weft.agents.toolbox.search import found_tools
from weft.agents.toolbox.stored import KeepsTools
from weft.core.ids import tenant_prefix
from weft.core.values import encode
from weft.errors import BadValue, UsageError
from weft.pipelines.pipeline import Pipeline, read_pipeline
from weft.steps.pipelines.failures import is_final_failure
from weft.steps.pipelines.run import PipelineRunner
from weft.steps.strangers import fits_inside
from weft.steps.task import TOOL, Executor, Task, current_task


class ToolInput(msgspec.Struct):
    """What the loop gives to a tool: who calls it, and the arguments of the model."""

    arguments: dict[str, Any] = {}
    agent: str = ""
    spec: HeldBlob | None = None
    name: str = ""
    """The name of a stored tool."""
    operation: Any = None
    """The operation that was found for an ``openapi_action``."""


_read = msgspec.json.Decoder(ToolInput).decode
Perform = Callable[[ToolInput, Task, Executor], Awaitable[Any]]


class ToolBody:
    """Performs one tool."""

    __slots__ = ("_perform", "name")

    def __init__(self, name: str, perform: Perform) -> None:
        self.name = name
        self._perform = perform

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        task = current_task()
        assert task is not None, "a step is performed for a task"
        return encode(await self._perform(_read(given), task, executor), what=f"{self.name} gives", trusted=True)

    def is_final(self, error: BaseException) -> bool:
        return is_final_failure(error) or isinstance(error, BadValue)


class Toolbox:
    """Makes the bodies of the tools."""

    def __init__(self, runner: PipelineRunner, results: ToolResults, stored: KeepsTools, openapi: OpenApiCalls) -> None:
        self._openapi = openapi
        self._runner = runner
        self._results = results
        self._stored = stored

    def body(self, step: str) -> ToolBody | None:
        """Return the body of a step; None if it performs no tool."""
        performs: Mapping[str, Perform] = {
            f"{TOOL}{EXECUTE}": self._execute,
            f"{TOOL}{READ}": self._read_result,
            f"{TOOL}{SEARCH}": self._search,
            STORED: self._call_stored,
            f"{TOOL}{INTERPRETER}": run_python,
            OPERATION: self._find_operation,
            f"{TOOL}{OPENAPI}": self._call_operation,
        }
        perform = performs.get(step)
        return ToolBody(step, perform) if perform is not None else None

    async def _find_operation(self, call: ToolInput, task: Task, executor: Executor) -> Any:
        return await self._openapi.find(call.arguments)

    async def _call_operation(self, call: ToolInput, task: Task, executor: Executor) -> Any:
        return await self._openapi.call(read_operation(call.operation), call.arguments, task)

    async def _execute(self, call: ToolInput, task: Task, executor: Executor) -> Any:
        pipeline = read_pipeline(call.arguments.get("pipeline"))
        result = await self._run(pipeline, call.arguments.get("input_ref"), task, executor)
        if pipeline.effect != "irreversible":
            await self._stored.used(_tenant(task), task.run_id, pipeline.source)
        return result

    async def _run(self, pipeline: Pipeline, input_ref: Any, task: Task, executor: Executor) -> dict[str, Any]:
        data = await self._results.load(str(input_ref), task.uid) if input_ref else b"null"
        stored = {name: await self._results.load(name, task.uid) for name in pipeline.references()}
        raw = await self._runner.run(pipeline, data, executor, stored)
        held = await self._results.keep(raw)
        value = msgspec.json.decode(raw)
        shown: dict[str, Any] = {"result_ref": held.at, "result_preview": describe_result(value)}
        if len(raw) <= VALUE_BYTES_MAX and fits_inside(value, 1):
            shown["value"] = value
        return {**shown, "held": held}

    async def _read_result(self, call: ToolInput, task: Task, executor: Executor) -> Any:
        arguments = call.arguments
        raw = await self._results.load(str(arguments.get("ref", "")), task.uid)
        return part_of(raw, int(arguments.get("offset", 0)), arguments.get("limit"))

    async def _search(self, call: ToolInput, task: Task, executor: Executor) -> Any:
        if call.spec is None:
            raise BadValue("The tool search_tools is only for agents.")
        spec = decode_spec(await self._results.load_own(call.spec))
        own = [tool for tool in spec.tools if tool.name not in (SEARCH, CALL)]
        names = {tool.name for tool in own}
        more = [tool.spec() for tool in await self._stored.offered(_tenant(task))]
        tools = [*own, *(tool for tool in more if tool.name not in names)]
        return found_tools(str(call.arguments.get("query", "")), tools, int(call.arguments.get("limit", 10)))

    async def _call_stored(self, call: ToolInput, task: Task, executor: Executor) -> Any:
        offered = {tool.name: tool for tool in await self._stored.offered(_tenant(task))}
        tool = offered.get(call.name)
        if tool is None:
            names = ", ".join(sorted(offered)) or "none"
            raise UsageError(
                f'There is no tool "{call.name[:100]}".', hint=f"Stored tools: {names}.", code="tool.unknown"
            )
        arguments = {name: value for name, value in call.arguments.items() if name != "input_ref"}
        pipeline = read_pipeline(tool.shape.fill(arguments))
        return await self._run(pipeline, call.arguments.get("input_ref"), task, executor)


async def run_python(call: ToolInput, _: Task, executor: Executor) -> Any:
    """Run Python in the sandbox."""
    code, data = str(call.arguments.get("code", "")), call.arguments.get("data")
    return await executor.in_thread(lambda: interpret_code(code, data))


def _tenant(task: Task) -> str:
    """Return the tenant of a task; empty for runs of the operator."""
    return tenant_prefix(task.run_id)[1:-1]
