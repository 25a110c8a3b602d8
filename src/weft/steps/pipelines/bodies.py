"""The bodies of pipelines: a node of a graph, a step of a goal, a step of an app."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from weft.core.goal.definitions import PipelineWay, StepDef, inner_name
from weft.errors import BadValue, UsageError
from weft.pipelines.pipeline import Pipeline, read_pipeline
from weft.ports.clock import Clock
from weft.steps.http.client import HttpClient
from weft.steps.pipelines.failures import is_final_failure
from weft.steps.pipelines.run import PipelineRunner
from weft.steps.python import PythonStep
from weft.steps.signature import Signature
from weft.steps.task import Executor

DATA = "data"
"""The name of the input of a pipeline."""


class _PipelineCall(msgspec.Struct):
    pipeline: list[Any]
    data: msgspec.Raw = msgspec.Raw(b"null")


_read_call = msgspec.json.Decoder(_PipelineCall).decode
_read_values = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class PipelineNode:
    """Performs all ``pipeline`` nodes of graphs. The pipeline is in the arguments, because it may have templates."""

    __slots__ = ("_runner", "name")

    def __init__(self, name: str, runner: PipelineRunner) -> None:
        self.name = name
        self._runner = runner

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        try:
            call = _read_call(given)
        except msgspec.ValidationError as error:
            raise BadValue(f"{self.name} got no pipeline: {error}.", code="value.wrong_type") from error
        return await self._runner.run(read_pipeline(call.pipeline), bytes(call.data), executor)

    def is_final(self, error: BaseException) -> bool:
        return is_final_failure(error)


class PipelineDefined:
    """Performs the pipeline of one step definition. Its input is the need that it calls ``data``, or its only one."""

    __slots__ = ("_data", "_pipeline", "_runner", "name")

    def __init__(self, definition: StepDef, runner: PipelineRunner) -> None:
        if not isinstance(definition.way, PipelineWay):
            raise UsageError(f"{definition.id} is not a pipeline.")
        self.name = definition.id
        self._pipeline = read_pipeline(definition.way.pipeline)
        names = [inner_name(fact, need) for fact, need in definition.needs.items()]
        self._data = DATA if DATA in names or len(names) != 1 else names[0]
        self._runner = runner

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        data = bytes(_read_values(given).get(self._data, b"null"))
        return await self._runner.run(self._pipeline, data, executor)

    def is_final(self, error: BaseException) -> bool:
        return is_final_failure(error)


class PipelineStepBody(PythonStep):
    """A pipeline that an app registers as a step. ``fn`` performs it outside a workflow."""

    __slots__ = ("_clock", "pipeline")

    def __init__(
        self, fn: Callable[..., Any], signature: Signature, pipeline: Pipeline, *, name: str, clock: Clock
    ) -> None:
        super().__init__(name, fn, signature)
        self.pipeline = pipeline
        self._clock = clock

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        data = bytes(_read_values(given).get(DATA, b"null"))
        return await run_alone(self.pipeline, data, executor, self._clock)

    def is_final(self, error: BaseException) -> bool:
        return is_final_failure(error)


async def run_alone(pipeline: Pipeline, data: bytes, executor: Executor, clock: Clock) -> bytes:
    """Perform a pipeline with an HTTP client of its own, which is closed afterwards. Raises PipelineFailed."""
    client = HttpClient()
    try:
        return await PipelineRunner(lambda: client, clock).run(pipeline, data, executor)
    finally:
        await client.close()
