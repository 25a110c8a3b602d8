"""A token that works again after a failure: its effect says whether a person must approve first."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

import weft
from tests.graph.random_plays import Play, Program
from weft.core import commands as c
from weft.core import events as e
from weft.core.graph.hosted import NodeTask
from weft.errors import NotFound, Refused
from weft.graphs.load import load_graph
from weft.testing import World

GRAPH = {
    "name": "flow",
    "nodes": {"a": {"step": "price", "next": "b"}, "b": {"step": "charge", "next": "d"}, "d": {"step": "mail"}},
}


class Irreversible(Program):
    """A program in which node b must not be performed twice."""

    def task(self, node: str) -> NodeTask:
        return NodeTask(e.Policy(effect="irreversible", attempts_max=1) if node == "b" else e.Policy(attempts_max=1))


class ShopPlay(Play):
    program = Irreversible


def failed_at(node: str) -> tuple[ShopPlay, dict[str, Any]]:
    answers: dict[str, Any] = {node: "boom"}
    play = ShopPlay(load_graph(GRAPH).graph, lambda at, _: answers.get(at, {}), watched=False)
    while not play.state.over:
        play.reply(play.numbers()[0])
    assert play.state.status == "failed"
    answers.clear()
    return play, answers


def performed(play: Play, node: str) -> list[str]:
    return [effect.key.partition("/")[2] for effect in play.handed_out if effect.location.startswith(f"{node}/")]


def finish(play: Play) -> None:
    while not play.state.over:
        play.reply(play.numbers()[0])


def test_an_irreversible_node_that_failed_waits_for_a_person() -> None:
    play, _ = failed_at("b")
    play.tell(c.RetryRun())
    assert len(performed(play, "b")) == 1
    (number,) = play.state.asks
    assert play.machine.location(number).startswith("b/")
    play.tell(c.DecideAsk("b", approved=True))
    finish(play)
    assert play.state.status == "completed"
    first, second = performed(play, "b")
    assert first == second


def test_a_node_that_is_rejected_fails() -> None:
    play, _ = failed_at("b")
    play.tell(c.RetryRun())
    play.tell(c.DecideAsk("b", approved=False, reason="no"))
    assert play.state.status == "failed"
    assert play.state.failure is not None
    assert play.state.failure.code == "step.rejected"
    assert len(performed(play, "b")) == 1


def test_an_approval_given_beforehand_names_the_node() -> None:
    play, _ = failed_at("b")
    play.tell(c.RetryRun(approved=["b"]))
    finish(play)
    assert play.state.status == "completed"
    assert len(performed(play, "b")) == 2


def test_an_approval_of_a_node_that_is_not_there_is_refused() -> None:
    play, _ = failed_at("b")
    before = len(play.log)
    with pytest.raises(weft.Refused, match="the graph has no node bb"):
        play.tell(c.RetryRun(approved=["b", "bb"]))
    assert len(play.log) == before


@pytest.mark.parametrize("node", ["a", "d"])
def test_an_idempotent_node_is_performed_again_with_the_same_key(node: str) -> None:
    play, _ = failed_at(node)
    play.tell(c.RetryRun())
    finish(play)
    first, second = performed(play, node)
    assert first == second
    assert len(performed(play, "b")) == 1


def test_a_cancel_closes_the_question() -> None:
    play, _ = failed_at("b")
    play.tell(c.RetryRun())
    play.tell(c.CancelRun("enough"))
    assert play.state.status == "cancelled"
    assert len(performed(play, "b")) == 1


# --- results set by hand -----------------------------------------------------------------------------------------


def test_the_work_of_a_node_is_set_and_routed() -> None:
    play = ShopPlay(load_graph(GRAPH).graph, lambda *_: {}, watched=False)
    play.tell(c.SetResult(place="a", output=Raw(b'{"price":1}'), by="ann", reason="known"))
    assert [play.node_of(number) for number in play.state.tasks] == ["b"]
    finish(play)
    assert play.state.status == "completed"
    noted = next(event for event in play.log if isinstance(event, e.ResultSet))
    assert (noted.by, noted.reason) == ("ann", "known")


def test_the_work_of_a_node_fails_with_the_error_that_is_set() -> None:
    play = ShopPlay(load_graph(GRAPH).graph, lambda *_: {}, watched=False)
    play.tell(c.SetResult(place="a", error="closed"))
    assert play.state.status == "failed"
    assert play.state.failure is not None
    assert (play.state.failure.message, play.state.failure.code) == ("closed", "step.set")


def test_an_irreversible_node_in_flight_needs_force() -> None:
    play = ShopPlay(load_graph(GRAPH).graph, lambda *_: {}, watched=False)
    play.reply(play.numbers()[0])
    with pytest.raises(Refused, match="in flight"):
        play.tell(c.SetResult(place="b", output=Raw(b"1")))
    play.tell(c.SetResult(place="b", output=Raw(b"1"), force=True))
    finish(play)
    assert play.state.status == "completed"
    assert len(performed(play, "b")) == 1


def test_a_node_that_has_ended_cannot_be_set() -> None:
    play, _ = failed_at("d")
    with pytest.raises(NotFound, match="fork"):
        play.tell(c.SetResult(place="a", output=Raw(b"1")))


def waiting_behind_a_charge() -> tuple[World, weft.App, list[int]]:
    """Start a run that has charged 5, and waits."""
    app, charged = weft.App("memory://"), list[int]()

    @app.step(effect="irreversible")
    async def charge(cents: int) -> str:
        charged.append(cents)
        return "charged"

    nodes = {
        "price": {"pass": True, "next": "pay"},
        "pay": {"step": "charge", "with": {"cents": 5}, "next": "wait"},
        "wait": {"receive": "go"},
    }
    app.graph({"name": "shop", "nodes": nodes})
    world = World(app)
    world.start("shop", {}, id="run")
    world.settle()
    return world, app, charged


MOVED = [
    {"op": "move", "from": "/nodes/pay", "path": "/nodes/pay2"},
    {"op": "replace", "path": "/nodes/price/next", "value": "pay2"},
]
DEARER = {"op": "replace", "path": "/nodes/pay2/with/cents", "value": 6}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("dearer", [True, False])
def test_going_back_finds_the_work_of_a_node_that_is_gone(*, at_once: bool, dearer: bool) -> None:
    world, app, charged = waiting_behind_a_charge()
    ops = [*MOVED, DEARER] if dearer else MOVED

    async def go_back() -> None:
        run = app.get("run")
        if at_once:
            plan = await run.patch(ops, move=[{"node": "wait", "to": "price"}], reason="back")
            assert ("repeats", "pay") in [(entry.what, entry.place) for entry in plan.entries]
        else:
            await run.patch(ops, reason="renamed")
            await run.retry(start="price")

    async def approve() -> None:
        await app.get("run").decide("pay2", approved=True)

    world.perform(go_back)
    world.settle()
    assert charged == [5]
    if dearer:
        world.perform(approve)
        world.settle()
        assert charged == [5, 6]
    world.close()
