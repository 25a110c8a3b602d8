"""Metrics of language models and tools for Prometheus: by names that the program chooses, never by run or user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from weft.agents.models.meter import ModelCounts
    from weft.runtime.worker.tool_meter import ToolCounts


class ModelCollector(Collector):
    """Reads the counts of a host when they are scraped."""

    def __init__(self) -> None:
        self.read: Callable[[], Mapping[str, ModelCounts]] = dict
        """Returns the counts by alias."""

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; none if no model was asked."""
        counts = self.read()
        if not counts:
            return
        calls = CounterMetricFamily("weft_model_calls", "Calls of models, by outcome.", labels=["model", "outcome"])
        tokens = CounterMetricFamily("weft_model_tokens", "Tokens of models, by kind.", labels=["model", "kind"])
        money = CounterMetricFamily("weft_model_money", "What models cost.", labels=["model", "currency"])
        seconds = CounterMetricFamily("weft_model_seconds", "Time that calls of models took.", labels=["model"])
        for alias, found in counts.items():
            for outcome, count in found.calls.items():
                calls.add_metric([alias, outcome], count)
            for kind, count in found.tokens.items():
                tokens.add_metric([alias, kind], count)
            for currency, millionths in found.money.items():
                money.add_metric([alias, currency], millionths / 1_000_000)
            seconds.add_metric([alias], found.seconds)
        yield from (calls, tokens, money, seconds)


class ToolCollector(Collector):
    """Reads the counts of tool calls of a host when they are scraped."""

    def __init__(self) -> None:
        self.counts: Mapping[str, ToolCounts] = {}

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; none if no tool was called."""
        if not self.counts:
            return
        calls = CounterMetricFamily("weft_tool_calls", "Tool calls of agents, by outcome.", labels=["tool", "outcome"])
        seconds = CounterMetricFamily("weft_tool_seconds", "Time that tool calls of agents took.", labels=["tool"])
        for tool, found in self.counts.items():
            for outcome, count in found.calls.items():
                calls.add_metric([tool, outcome], count)
            seconds.add_metric([tool], found.seconds)
        yield from (calls, seconds)
