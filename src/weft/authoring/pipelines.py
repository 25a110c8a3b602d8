"""Pipelines as steps of an app."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from weft.authoring.registrations import Registrations
from weft.authoring.steps import Step
from weft.core.values import decode, encode
from weft.pipelines.pipeline import Pipeline, read_pipeline
from weft.runtime.clock import SystemClock
from weft.steps.pipelines.bodies import PipelineStepBody, run_alone

T = TypeVar("T")


def add_pipeline(registered: Registrations, name: str, steps: Sequence[Mapping[str, Any]]) -> Step[[Any], Any]:
    """Register a pipeline as a step. Raises PipelineFailed, NameTaken."""
    pipeline = read_pipeline(decode(encode(list(steps), what=f"The pipeline {name} has")))
    fn = _function(name, pipeline)
    step: Step[[Any], Any] = registered.add_step(fn, name=name, effect=pipeline.effect)
    step.body = PipelineStepBody(fn, step.signature, pipeline, name=step.name, clock=SystemClock())
    return step


def _function(name: str, pipeline: Pipeline) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    """Return the function that performs a pipeline outside a workflow."""

    async def perform(data: Any) -> Any:
        raw = encode(data, what=f"{name} was given")
        return decode(await run_alone(pipeline, raw, _Threads(), SystemClock()))

    perform.__name__ = perform.__qualname__ = name
    perform.__doc__ = f"Pipeline: {', '.join(placed.name for placed in pipeline.steps)}."
    return perform


class _Threads:
    """Runs functions in threads of the event loop."""

    async def in_thread(self, body: Callable[[], T]) -> T:
        return await asyncio.to_thread(body)

    async def in_process(self, body: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.to_thread(body, *arguments)
