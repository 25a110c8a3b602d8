"""The queue of a start is the queue of the run's steps that name none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from weft.core.effects import PerformTask
from weft.errors import BadValue


def queues_of(start: Any) -> dict[str, str]:
    """The queue under which each step of a run is handed out."""
    app = weft.App("memory://")
    found: dict[str, str] = {}

    @app.step
    async def plain() -> None: ...

    @app.step(queue="gpu")
    async def named() -> None: ...

    @app.workflow
    async def flow() -> None:
        await plain()
        await named()

    app.graph(
        {"weft": "graph/1", "name": "drawn", "nodes": {"a": {"step": "plain", "next": "b"}, "b": {"step": "named"}}}
    )

    async def main() -> None:
        async with app:
            worker = app.service.work._worker  # type: ignore[union-attr]
            hand_out = worker.perform

            def seen(flight: Any) -> None:
                assert isinstance(flight.effect, PerformTask)
                found[flight.effect.step] = flight.effect.policy.queue
                hand_out(flight)

            worker.perform = seen  # type: ignore[method-assign]
            await (await start(app)).result()

    asyncio.run(main())
    return found


@pytest.mark.parametrize("workflow", ["flow", "drawn"])
def test_steps_without_a_queue_take_that_of_the_start(workflow: str) -> None:
    assert queues_of(lambda app: app.start(workflow, {}, queue="slow")) == {"plain": "slow", "named": "gpu"}
    assert queues_of(lambda app: app.start(workflow, {})) == {"plain": "default", "named": "gpu"}


def test_what_cannot_name_a_queue_is_refused_before_anything_is_written() -> None:
    with pytest.raises(BadValue):
        queues_of(lambda app: app.start("flow", {}, queue="a/b"))
