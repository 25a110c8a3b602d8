"""Why a run is where it is, as data: kinds, places and ids, and the sentences that are made of them."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.observe.diagnosis import Diagnosis
from weft.observe.sentences import explanation_of


def diagnosed(app: weft.App, run: str, given: dict[str, Any] | None = None) -> Diagnosis:
    """Start a run, let it come as far as it can, and ask why it is there."""
    desk = Desk(app)

    async def scene() -> Diagnosis:
        handle = await app.start(run, given or {}, id="run")
        await calm()
        told = await handle.explain()
        assert told.diagnosis is not None
        return told.diagnosis

    return desk.play(scene)


def test_each_wait_of_code_has_its_kind_place_and_ids() -> None:
    app = weft.App("memory://")

    @app.step(retries=weft.Retry(attempts=3, delay="1m"))
    def charge() -> None:
        raise OSError("down")

    @app.workflow
    async def shop(ctx: weft.Context) -> None:
        async def ask() -> None:
            await ctx.ask("ship", title="Ship?", of=["ann"], timeout="1h")

        async def hear() -> None:
            await ctx.receive("paid")

        await ctx.join("all", {"pay": charge(), "rest": ctx.sleep("1h"), "ask": ask(), "hear": hear()})

    found = {wait.kind: wait for wait in diagnosed(app, "shop").waits}
    assert set(found) == {"retry", "sleep", "ask", "message"}
    retry = found["retry"]
    assert (retry.place, retry.step, retry.attempt, retry.attempts_max) == ("all/pay/charge", "charge", 2, 3)
    assert retry.failure is not None
    assert (retry.failure.type, retry.failure.message, retry.failure.traceback) == ("OSError", "down", "")
    assert retry.due is not None
    assert (found["ask"].title, found["ask"].asked) == ("Ship?", ["ann"])
    assert found["message"].names == ["paid"]
    assert len({wait.number for wait in found.values()}) == 4


def test_an_attempt_has_been_running_since_it_was_due_and_not_since_the_first_one() -> None:
    app = weft.App("memory://")

    @app.step(retries=weft.Retry(attempts=3, delay="1m"))
    async def charge() -> None:
        if weft.task().attempt == 1:
            raise OSError("down")
        await asyncio.Event().wait()

    @app.workflow
    async def shop() -> None:
        await charge()

    async def scene() -> str:
        handle = await app.start(shop())
        await asyncio.sleep(70)
        (wait,) = (await handle.explain()).waiting
        await handle.cancel(force=True)
        return wait.unblock

    seconds = re.match(r"attempt 2, running for (\d+)\.\d+s; it has no timeout", Desk(app).play(scene))
    assert seconds is not None
    assert int(seconds[1]) < 30


GRAPH: dict[str, Any] = {
    "weft": "graph/1",
    "name": "flow",
    "input": {"n": "integer"},
    "nodes": {
        "look": {
            "pass": True,
            "next": [{"when": "input.n > 5", "to": "big"}, {"to": "both"}],
        },
        "big": {"pass": True},
        "both": {"pass": True, "next": [{"to": ["left", "right"]}]},
        "left": {"pass": True, "next": "meet"},
        "right": {"ask": {"title": "Go on?"}, "next": "meet"},
        "meet": {"pass": True, "join": "all"},
    },
}


def test_the_path_of_a_graph_names_edges_and_the_values_they_saw() -> None:
    app = weft.App("memory://")
    app.graph(GRAPH)
    found = diagnosed(app, "flow", {"n": 3})
    assert [(step.kind, step.node, [edge.to for edge in step.edges]) for step in found.path][1:3] == [
        ("routed", "look", ["both"]),
        ("routed", "both", ["left", "right"]),
    ]
    assert all(edge.edge for step in found.path for edge in step.edges)
    (skip,) = [one for one in found.skips if one.node == "big"]
    assert (skip.why, skip.at) == ("condition", "look")
    assert skip.condition is not None
    assert (skip.condition.source, skip.condition.seen) == ("input.n > 5", {"input.n": 3})
    (join,) = found.joins
    assert (join.node, join.arrived, join.total, join.need) == ("meet", 1, 2, 2)
    assert [(one.index, one.place, one.status) for one in join.missing] == [(1, "right", "open")]


@pytest.mark.parametrize("given", [{"n": 3}, {"n": 9}])
def test_a_diagnosis_survives_the_wire_and_gives_the_same_sentences(given: dict[str, Any]) -> None:
    app = weft.App("memory://")
    app.graph(GRAPH)
    found = diagnosed(app, "flow", given)
    again = msgspec.json.decode(msgspec.json.encode(found), type=Diagnosis)
    assert str(explanation_of(again)) == str(explanation_of(found))
