"""What the log says, sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence

import weft
from weft.core.ids import RunId
from weft.observe.event_text import event_text
from weft.observe.history import History
from weft.testing import World


def sentences(world: World, run: str) -> list[str]:
    async def read() -> Sequence[str]:
        service = world.app.get(run)._service
        history, found = History(), []
        async for stored in service.reader.events(await service.row(RunId(run))):
            found += [event_text(part, about.location if about else "") for part, about in history.add(stored)]
        return found

    return list(world.perform(read))


def test_a_goal_run_says_once_that_a_step_started() -> None:
    app = weft.App("memory://")

    @app.step(gives="total")
    async def price(order_id: str) -> int:
        return 7

    @app.step
    async def bill(total: int) -> str:
        return f"bill over {total}"

    app.goal("billing", bill)
    world = World(app)
    world.start("billing", {"order_id": "o-1"}, id="run")
    world.settle()

    found = sentences(world, "run")

    assert found[-10:] == [
        "price started",
        "price began its work",
        "price succeeded",
        "price gave total",
        "price completed",
        "bill started",
        "bill began its work",
        "bill succeeded",
        "bill completed",
        "the run completed",
    ]
