"""Perform a pipeline: its requests by the HTTP client, the rest in a thread or in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.pipelines.faults import StepFault
from weft.pipelines.limits import TIME_S_MAX
from weft.pipelines.perform import needs_process, perform_steps
from weft.pipelines.pipeline import Pipeline, PlacedStep
from weft.pipelines.steps.http import HttpRequestStep
from weft.ports.clock import Clock
from weft.steps.http.client import HttpClient
from weft.steps.pipelines.request import request_body
from weft.steps.task import Executor


class PipelineRunner:
    """Performs pipelines for a host."""

    def __init__(self, client: Callable[[], HttpClient], clock: Clock, seconds: float = TIME_S_MAX) -> None:
        self._client = client
        self._clock = clock
        self._seconds = seconds

    async def run(
        self, pipeline: Pipeline, data: bytes, executor: Executor, stored: Mapping[str, bytes] | None = None
    ) -> bytes:
        """Perform a pipeline on data as JSON, and return the result as JSON.

        ``stored`` has the data that its joins refer to. Raises PipelineFailed, NotAllowed.
        """
        began = self._clock.now_ms()
        for request, steps in pipeline.segments():
            if request is not None:
                data = await self._fetch(request)
            if steps:
                left = self._seconds - (self._clock.now_ms() - began) / 1_000
                data = await self._perform(pipeline, steps, data, executor, (stored or {}, left))
        return data

    async def _fetch(self, request: PlacedStep) -> bytes:
        assert isinstance(request.step, HttpRequestStep)
        try:
            return await request_body(request.step, self._client(), self._clock)
        except StepFault as fault:
            raise fault.at(request.index, request.name) from fault.__cause__

    async def _perform(
        self,
        pipeline: Pipeline,
        steps: tuple[PlacedStep, ...],
        data: bytes,
        executor: Executor,
        within: tuple[Mapping[str, bytes], float],
    ) -> bytes:
        stored, seconds = within
        wanted = {name: stored[name] for placed in steps for name in placed.step.references() if name in stored}
        for placed in steps:
            for name in placed.step.references():
                if name not in stored:
                    raise _unknown_reference(name).at(placed.index, placed.name)
        if seconds <= 0:
            raise StepFault("timeout", f"the pipeline took longer than {self._seconds:g} s.").at(
                steps[0].index, steps[0].name
            )
        if not needs_process(steps, data, wanted):
            return await executor.in_thread(lambda: perform_steps(steps, data, wanted))
        from weft.pipelines.workers import perform_killable  # noqa: PLC0415 - few pipelines need a process

        return await executor.in_thread(lambda: perform_killable(steps, pipeline.source, data, wanted, seconds))


def _unknown_reference(name: Any) -> StepFault:
    return StepFault(
        "bad_argument", f'there is no result "{str(name)[:80]}" here.', "Give the rows, or a result_ref of this run."
    )
