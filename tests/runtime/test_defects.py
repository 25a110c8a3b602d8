"""A defect of Weft's own in one run: that run stands still for a person and says why, and every other goes on."""

from __future__ import annotations

import weft
from weft.core import commands as c
from weft.core.ids import EntryId
from weft.runtime.run.draft import PendingCommand
from weft.testing import World


def test_a_run_that_cannot_be_decided_stops_and_no_other_does() -> None:
    app = weft.App("memory://")
    graph = app.graph({"weft": "graph/1", "name": "g", "nodes": {"wait": {"wait": "1h"}}})
    world = World(app)
    world.start(graph, id="hurt")
    other = world.start(graph, id="well")
    world.settle()

    async def hurt() -> None:
        local = app.service.local
        assert local is not None
        actor = next(actor for actor in local.all() if actor.id == "hurt")
        actor.machine._decide = {c.FireTimer: lambda *_: 1 // 0}  # type: ignore[attr-defined]
        actor.post(PendingCommand(c.FireTimer(EntryId(next(iter(actor.machine.state.timers))))))

    world.perform(hurt)
    world.advance("2h")

    assert other.result() == {}
    explained = world.perform(lambda: app.get("hurt").explain())
    assert explained.status == "held"
    assert "cannot be" in explained.summary


def test_what_is_performed_anew_after_an_undo_has_a_key_of_its_own() -> None:
    app = weft.App("memory://")

    @app.step(retries=0)
    def charge() -> str:
        return "paid"

    @charge.undo
    def refund() -> None: ...

    @app.step(retries=0)
    def ship() -> str:
        return "shipped"

    @app.workflow
    async def order() -> str:
        await charge()
        return await ship()

    world = World(app)
    world.fake(ship, ValueError("no van"))
    run = world.start(order(), id="o-1")
    world.settle()
    assert run.status == "failed"

    world.fake(ship, "shipped")
    world.perform(lambda: app.get("o-1").retry())

    assert run.result() == "shipped"
    first, second = (call.key for call in world.calls(charge))
    assert first != second
    assert len({call.key for call in world.calls(ship)}) == 1
