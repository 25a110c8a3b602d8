"""The stream of an agent: one address follows a whole tree of runs."""

from __future__ import annotations

from typing import Any

import msgspec

import weft
from weft.core.ids import RunId
from weft.testing import SimRun, World, calls

app = weft.App()
app.model("fast", url="http://127.0.0.1:9/v1")
app.model("small", url="http://127.0.0.1:9/v1")


@app.step(effect="irreversible")
async def refund(cents: int) -> str:
    return "refunded"


helper = app.agent("helper", model="small")
lead = app.agent("lead", model="fast", tools=[refund, weft.tool(helper, effect="pure")])


@app.workflow
async def ask(question: str) -> str:
    return (await lead(question)).output


def chunks(world: World, run: SimRun[Any]) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        row = await app.service.row(RunId(run.id))
        read = await app.service.store.streams.read(row.uid, "agent", after=0, limit=100)
        return [msgspec.json.decode(chunk.body) for chunk in read]

    return world.perform(read)


def test_all_runs_below_a_root_write_to_its_stream() -> None:
    world = World(app)
    world.fake_model("fast", calls(helper={"prompt": "help"}), calls(refund={"cents": 5}), "Done.")
    world.fake_model("small", "I helped.")
    run = world.start(ask("go"))
    world.settle()
    child = next(event.data["run_id"] for event in run.events if event.kind == "child_started")
    SimRun(world, child, lambda: app.get(RunId(child))).answer("turn/~1/tools/0/approve", by="fin")
    assert run.result() == "Done."

    written = chunks(world, run)

    kinds = [(chunk["kind"], chunk.get("turn")) for chunk in written if chunk["run"] == child]
    assert kinds == [
        *[("call", 0), ("usage", 0)],
        *[("result", 0), ("call", 1), ("usage", 1), ("ask", 1)],
        *[("result", 1), ("text", 2), ("usage", 2), ("end", 2)],
    ]
    places = [chunk["place"] for chunk in written if chunk["run"] == child]
    assert places[0] == "turn/~0/model"
    assert any(chunk["text"] == "I helped." for chunk in written if chunk["kind"] == "text")
    assert {chunk["run"] for chunk in written} == {child, f"{child}.turn/~0/tools/0/helper"}


def results_of(agent: weft.Agent[str], *answers: str) -> list[tuple[str, int]]:
    """Let an agent look something up, with an answer of a person if it asks. Returns where its results are written."""
    world = World(app)
    world.fake_model("fast", calls(("look", {"n": 1}), ("look", {"n": 2})), "Done.")
    run = world.start(agent("go"))
    for place in answers:
        run.answer(place, form={"amount": 1}, by="ann")
    assert run.result().output == "Done."
    return [(chunk["place"], chunk["turn"]) for chunk in chunks(world, run) if chunk["kind"] == "result"]


@app.step(effect="pure")
async def look(n: int) -> int:
    return n


plain = app.agent("plain", model="fast", tools=[look])
once = app.agent("once", model="fast", tools=[look], turns=1, on_exhausted="answer")
poor = app.agent("poor", model="fast", tools=[look], budget=weft.Budget(calls=1, of=["ann"]), on_exhausted="ask")


def test_results_have_the_turn_and_the_place_of_their_calls_whenever_the_model_reads_them() -> None:
    called = [("turn/~0/tools/0", 0), ("turn/~0/tools/1", 0)]

    assert results_of(plain) == called
    assert results_of(once) == called
    assert results_of(poor, "turn/~1/budget") == called
