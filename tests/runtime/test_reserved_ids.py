"""The ids of Weft's own runs cannot be taken, and the verbs of schedules act on schedules only."""

from __future__ import annotations

import pytest

import weft
from weft.core import commands as c
from weft.core.events import NULL
from weft.errors import NotFound, UsageError
from weft.runtime.schedules import ScheduleService
from weft.runtime.start_support import StartOptions
from weft.testing import World


def waiting() -> World:
    app = weft.App("memory://")

    @app.workflow
    async def waiter(ctx: weft.Context) -> str:
        return await ctx.receive("go", str)

    return World(app)


@pytest.mark.parametrize("taken", ["schedule/x", "bulk/cancel-1", "@acme/schedule/x"])
def test_no_run_and_no_fork_takes_the_id_of_one_of_wefts_own(taken: str) -> None:
    world = waiting()
    world.perform(lambda: world.app.start("waiter", id="a"))
    world.settle()

    with pytest.raises(UsageError, match="are Weft's own"):
        world.perform(lambda: world.app.start("waiter", id=taken))
    with pytest.raises(UsageError, match="are Weft's own"):
        world.perform(lambda: world.app.get("a").fork(id=taken))
    world.perform(lambda: world.app.start("waiter", id="scheduled/x"))
    world.close()


def test_a_run_that_is_no_schedule_is_not_removed_as_one() -> None:
    world = waiting()
    start = c.StartRun(run_id="schedule/x", workflow="waiter", version="", style="", input=NULL)
    world.perform(lambda: world.app.service.create(start, StartOptions(chosen=True)))
    world.settle()

    with pytest.raises(NotFound, match="There is no schedule"):
        world.perform(lambda: ScheduleService(world.app.service).remove("x"))
    assert world.perform(lambda: world.app.get("schedule/x").status()) not in ("cancelled", "cancelling")
    world.close()
