"""Spans and metrics of model calls: by alias, without content unless it is asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.agents.model_kit import asking
from tests.agents.model_workflow import ask
from tests.agents.scripted_server import ScriptedServer, refused, scripted, text
from tests.agents.test_fake_models import said
from tests.ext.otel_kit import Collector, attributes
from tests.ext.otel_kit import collector as collector  # noqa: PLC0414 - a fixture
from tests.steps.http_kit import go
from weft.server.model_metrics import ModelCollector


def talking_to(server: ScriptedServer) -> weft.App:
    app = weft.App("memory://")
    retries = weft.Retry(2, "fixed", "1ms")
    app.model("fast", url=server.url, model="gpt-5-mini", prices=weft.Prices("1", "2"), retries=retries)

    @app.workflow
    async def talk(ctx: weft.Context) -> str:
        reply = await ask(app.registered.models.aliases.get("fast"), add=[said("What is the password?")], turn=3)
        answer: str = reply["text"]
        return answer

    return app


def performed() -> weft.App:
    """Ask a model that fails once and then answers."""

    async def scenario() -> weft.App:
        async with scripted(refused(503), text("It is swordfish.")) as server:
            app = talking_to(server)
            async with app:
                handle = await app.start("talk", id="t-1")
                assert await handle.result(timeout="30s") == "It is swordfish."
                return app

    return asyncio.run(scenario())


def chats(collector: Collector) -> list[Any]:
    found = [span for span in collector.spans() if span.name == "chat fast"]
    return sorted(found, key=lambda span: span.start_time_unix_nano)


def test_a_call_is_a_span_with_the_model_and_its_tokens(collector: Collector) -> None:
    performed()

    first, second = chats(collector)
    assert first.status.code == 2
    noted = attributes(second)
    assert noted["gen_ai.operation.name"] == "chat"
    assert (noted["gen_ai.request.model"], noted["gen_ai.response.model"]) == ("gpt-5-mini", "m-1")
    assert (noted["gen_ai.usage.input_tokens"], noted["gen_ai.usage.output_tokens"]) == (120, 30)
    assert (noted["weft.model"], noted["weft.turn"], noted["weft.attempt"]) == ("fast", 3, 2)
    assert "password" not in str(noted)
    assert "swordfish" not in str(noted)


def test_content_is_traced_only_if_it_is_asked_for(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TRACE_CONTENT", "1")
    performed()

    noted = attributes(chats(collector)[1])
    assert "password" in noted["gen_ai.input.messages"]
    assert "swordfish" in noted["gen_ai.output.messages"]


def test_calls_and_tokens_are_counted_by_alias(collector: Collector) -> None:
    performed()

    found = collector.metrics()
    calls = {
        (attributes(point)["model"], attributes(point)["outcome"]): point.as_int
        for point in found["weft.model.calls"].sum.data_points
    }
    assert calls == {("fast", "unavailable"): 1, ("fast", "answered"): 1}
    tokens = {attributes(point)["kind"]: point.as_int for point in found["weft.model.tokens"].sum.data_points}
    assert tokens == {"input": 120, "cached": 100, "output": 30, "reasoning": 10}


def test_prometheus_gets_calls_tokens_money_and_seconds() -> None:
    async def scenario() -> None:
        answers = (text("ok"), refused(401), text("no", finish="content_filter"))
        async with asking(*answers, prices=weft.Prices("1", "2")) as asked:
            for _ in range(3):
                try:
                    await asked.perform(add=[said("hello")])
                except weft.ModelFailed:
                    continue
            collector = ModelCollector()
            assert list(collector.collect()) == []
            collector.read = lambda: asked.meter.counts
            samples = {
                (sample.name, *sample.labels.values()): sample.value
                for family in collector.collect()
                for sample in family.samples
            }

            assert samples["weft_model_calls_total", "fast", "answered"] == 1
            assert samples["weft_model_calls_total", "fast", "rejected"] == 1
            assert samples["weft_model_calls_total", "fast", "refused"] == 1
            assert samples["weft_model_tokens_total", "fast", "output"] == 60
            assert samples["weft_model_money_total", "fast", "USD"] == pytest.approx(0.00036)
            assert samples["weft_model_seconds_total", "fast"] >= 0

    go(scenario())
