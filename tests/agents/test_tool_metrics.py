"""Counts of tool calls: by tool and outcome, each call once, whatever is replayed."""

from __future__ import annotations

import pytest

import weft
from tests.agents.test_agent_spans import performed
from tests.agents.toolbox.test_patching import agent_run, patching
from tests.agents.toolbox.test_patching import make_app as patching_app
from tests.agents.toolbox.test_patching import start as start_flow
from tests.ext.otel_kit import Collector, attributes
from tests.ext.otel_kit import collector as collector  # noqa: PLC0414 - a fixture
from weft.core.budgets import Amounts, Cover
from weft.core.commands import ReportTaskSucceeded
from weft.core.ids import EntryId
from weft.runtime.worker.tool_meter import OTHER, TOOLS_MAX, ToolCounts, ToolMeter
from weft.server.model_metrics import ToolCollector
from weft.testing import World, calls

DENY = {"deny": "patch", "names": ["/edges/-"]}


def counts_of(world: World, app: weft.App) -> dict[str, ToolCounts]:
    async def read() -> dict[str, ToolCounts]:
        assert app.service.work is not None
        return dict(app.service.work.tools.counts)

    return world.perform(read)


def test_calls_are_counted_by_tool_and_outcome() -> None:
    app = weft.App(policy={"weft": "policy/1", "rules": [{"deny": "tool", "names": ["erase"]}]})
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step(effect="irreversible")
    async def pay(cents: int) -> str:
        return "paid"

    @app.step(retries=0)
    async def look(n: int) -> str:
        raise OSError("no")

    @app.step
    async def erase() -> None: ...

    agent = app.agent("clerk", model="fast", tools=[pay, look, erase, weft.person(of=["ann"])])
    world = World(app)
    world.fake_model(
        "fast", calls(("pay", {"cents": 1}), ("pay", {"cents": 2}), ("look", {"n": 1}), ("erase", {})), "Done."
    )
    run = world.start(agent("go"))
    for number, approved in enumerate((True, False)):
        run.answer(f"turn/~0/tools/{number}/approve", approved=approved, by="fin")
    assert run.result().output == "Done."

    collector = ToolCollector()
    assert list(collector.collect()) == []
    collector.counts = counts_of(world, app)
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in collector.collect()
        for sample in family.samples
    }
    counted = {labels[1:]: value for labels, value in samples.items() if labels[0] == "weft_tool_calls_total"}
    assert counted == {
        ("pay", "succeeded"): 1,
        ("pay", "refused"): 1,
        ("look", "failed"): 1,
        ("erase", "refused"): 1,
    }
    assert samples["weft_tool_seconds_total", "pay"] >= 0


def test_a_refusal_that_is_replayed_is_not_counted_again() -> None:
    app = weft.App(policy={"weft": "policy/1", "rules": [{"deny": "tool", "names": ["erase"]}]})
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step
    async def erase() -> None: ...

    agent = app.agent("clerk", model="fast", tools=[erase, weft.person(of=["ann"])])
    world = World(app)
    world.fake_model("fast", calls(("erase", {}), ("ask_person", {"question": "Which?"})), "Done.")
    run = world.start(agent("go"))
    world.settle()
    world.restart()
    run.answer("turn/~0/tools/1/ask_person", form={"answer": "That."}, by="ann")
    assert run.result().output == "Done."

    assert "erase" not in counts_of(world, app), "it was refused in the process before"


@pytest.mark.parametrize("by", ["policy", "person"])
def test_a_patch_that_is_refused_is_counted(by: str) -> None:
    app = patching_app(*([DENY] if by == "policy" else []))
    world = World(app)
    world.fake_model("fast", patching(), "Sorry.")
    run = start_flow(world)
    if by == "person":
        world.settle()
        agent = agent_run(world)
        agent.answer(agent.waiting_for()[0].location, approved=False, by="ops-1")
    run.result()

    assert counts_of(world, app)["patch_workflow"].calls == {"refused": 1}


def test_more_tools_than_a_program_has_are_counted_together() -> None:
    meter = ToolMeter()
    done = ReportTaskSucceeded(EntryId(1), 1, 0, b"null")  # type: ignore[arg-type]
    for number in range(TOOLS_MAX + 5):
        meter.count(Cover(amounts=Amounts(tools=1, per_tool={f"t{number}": 1})), done, 0.5)

    assert len(meter.counts) == TOOLS_MAX + 1
    assert meter.counts[OTHER].calls == {"succeeded": 5}


def test_opentelemetry_gets_calls_and_seconds(collector: Collector) -> None:
    performed()

    found = collector.metrics()
    (point,) = found["weft.tool.calls"].sum.data_points
    assert (attributes(point), point.as_int) == ({"tool": "look_up", "outcome": "succeeded"}, 1)
    assert attributes(found["weft.tool.time"].sum.data_points[0]) == {"tool": "look_up"}
