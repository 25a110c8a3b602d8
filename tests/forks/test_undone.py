"""Forks of runs whose work was undone, and of runs whose steps have another effect now."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.testing import SimRun, World


class Trips:
    """An app that reserves, fails to pay, and gives back."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.done: list[str] = []
        self.paying = False
        self.reserve = self.app.step(name="reserve")(self._reserve)
        self.reserve.undo(self._give_back)
        self.pay = self.app.step(name="pay")(self._pay)
        self.app.workflow(name="trip")(self._trip)
        nodes = {"reserve": {"step": "reserve", "next": "pay"}, "pay": {"step": "pay"}}
        self.app.graph({"name": "graph", "nodes": nodes})
        self.world = World(self.app)

    async def _reserve(self) -> None:
        self.done.append("reserve")

    async def _give_back(self) -> None:
        self.done.append("give back")

    async def _pay(self) -> None:
        if not self.paying:
            raise weft.Critical("no money")
        self.done.append("pay")

    async def _trip(self) -> str:
        await self.reserve()
        await self.pay()
        return "gone"

    def failed(self, name: str) -> SimRun[Any]:
        run = self.world.start(name, {}, id="run")
        self.world.settle()
        assert run.status == "failed"
        assert self.done == ["reserve", "give back"]
        self.done.clear()
        self.paying = True
        return run


POINTS: list[dict[str, Any]] = [{"failure": True}, {"before": "pay"}]


@pytest.mark.parametrize("point", POINTS)
def test_a_fork_of_code_performs_anew_what_was_undone(point: dict[str, Any]) -> None:
    trips = Trips()
    fork = trips.failed("trip").fork(**point)
    assert fork.result() == "gone"
    assert trips.done == ["reserve", "pay"]
    trips.world.close()


@pytest.mark.parametrize("point", POINTS)
def test_a_fork_of_a_graph_is_refused_behind_what_was_undone(point: dict[str, Any]) -> None:
    trips = Trips()
    run = trips.failed("graph")
    with pytest.raises(weft.Refused, match="has undone reserve") as caught:
        run.fork(**point)
    assert caught.value.code == "fork.undone"
    assert "--before reserve" in caught.value.hint
    run.fork(before="reserve").result()
    assert trips.done == ["reserve", "pay"]
    trips.world.close()


def test_a_fork_without_effects_may_share_what_was_undone() -> None:
    trips = Trips()
    fork = trips.failed("graph").fork(before="pay", effects="none")
    trips.world.settle()
    assert fork.status == "held"
    assert trips.done == []
    trips.world.close()


def test_completed_work_of_the_past_is_the_originals_to_undo() -> None:
    trips = Trips()
    trips.paying = True
    run = trips.world.start("trip", {}, id="run")
    assert run.result() == "gone"
    trips.paying = False
    fork = run.fork(after="reserve")
    trips.world.settle()
    assert fork.status == "failed"
    assert trips.done == ["reserve", "pay"]
    trips.world.close()


def test_work_that_was_irreversible_stays_so_in_a_fork() -> None:
    charged: list[str] = []
    app = weft.App("memory://")

    async def charge() -> str:
        charged.append("charge")
        return "charged"

    @app.workflow
    async def order(ctx: weft.Context, deployed: bool = False) -> str:
        found: str = await ctx.step("charge", charge, effect="idempotent" if deployed else "irreversible")
        return found

    world = World(app)
    run = world.start(order())
    assert run.result() == "charged"
    assert run.fork(input={"deployed": True}).result() == "charged"
    assert charged == ["charge"]
    world.close()
