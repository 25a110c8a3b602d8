"""Spans of agents: the run is ``invoke_agent``, each tool call ``execute_tool``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.agents.scripted_server import scripted, text, tool_calls
from tests.ext.otel_kit import Collector, attributes
from tests.ext.otel_kit import collector as collector  # noqa: PLC0414 - a fixture


def performed() -> None:
    """Run an agent that calls one tool, under another name, and then answers."""

    async def scenario() -> None:
        async with scripted(tool_calls(("c1", "look_up", '{"order_id":"o-1"}')), text("Delivered.")) as server:
            app = weft.App("memory://")
            app.model("fast", url=server.url)

            @app.step(effect="pure")
            async def find_order(order_id: str) -> str:
                """Look an order up."""
                return f"{order_id} is delivered"

            agent = app.agent("support", model="fast", tools=[weft.tool(find_order, name="look_up")])
            async with app:
                handle = await app.start(agent("Where is o-1?"), id="t-1")
                assert (await handle.result(timeout="30s")).output == "Delivered."

    asyncio.run(scenario())


def span_of(collector: Collector, name: str) -> Any:
    (found,) = [span for span in collector.spans() if span.name == name]
    return found


def test_the_run_and_its_tool_calls_have_the_names_of_the_conventions(collector: Collector) -> None:
    performed()

    run, tool = span_of(collector, "invoke_agent support"), span_of(collector, "execute_tool look_up")
    assert attributes(run)["gen_ai.operation.name"] == "invoke_agent"
    assert attributes(run)["gen_ai.agent.name"] == "support"
    noted = attributes(tool)
    assert noted["gen_ai.operation.name"] == "execute_tool"
    assert (noted["gen_ai.tool.name"], noted["gen_ai.agent.name"]) == ("look_up", "support")
    assert noted["weft.step"] == "find_order"
    assert "gen_ai.tool.call.arguments" not in noted
    assert tool.parent_span_id == run.span_id


def test_what_a_tool_got_and_gave_is_sent_only_if_that_is_asked_for(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_TRACE_CONTENT", "1")
    performed()

    noted = attributes(span_of(collector, "execute_tool look_up"))
    assert noted["gen_ai.tool.call.arguments"] == '{"order_id":"o-1"}'
    assert noted["gen_ai.tool.call.result"] == '"o-1 is delivered"'
