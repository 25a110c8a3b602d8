"""Resources in a simulated world."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.resources.kit import Pool, add_database
from weft.testing import World


def add_order(app: weft.App) -> Any:
    @app.step
    def read(order: str, *, pool: Pool = weft.injected) -> str:
        return f"{order} {pool.name}"

    @app.workflow
    async def reads(order: str) -> str:
        return await read(order)

    return reads


def test_a_world_gives_steps_a_fake(app: weft.App, said: list[str]) -> None:
    database = add_database(app, said)
    reads = add_order(app)
    world = World(app)
    world.fake(database, Pool("fake"))
    assert world.run(reads("o-1")) == "o-1 fake"
    world.restart()
    assert world.run(reads("o-2")) == "o-2 fake"
    assert [call.args for call in world.calls("read")] == [{"order": "o-1"}, {"order": "o-2"}]
    assert said == []


def test_a_world_opens_what_is_not_faked_once_per_process(app: weft.App, said: list[str]) -> None:
    add_database(app, said)
    reads = add_order(app)
    world = World(app)
    assert world.run(reads("o-1")) == "o-1 real"
    assert world.run(reads("o-2")) == "o-2 real"
    world.restart()
    assert world.run(reads("o-3")) == "o-3 real"
    assert said == ["open database", "open database"], "a process that dies closes nothing"


def test_a_fake_may_be_a_failure(app: weft.App, said: list[str]) -> None:
    database = add_database(app, said)
    reads = add_order(app)
    world = World(app)
    world.fake(database, OSError("down"))
    with pytest.raises(weft.RunFailed, match="database could not be opened: OSError: down"):
        world.run(reads("o-1"))
    with pytest.raises(weft.UsageError, match="faked by one"):
        world.fake(database, Pool("a"), Pool("b"))
