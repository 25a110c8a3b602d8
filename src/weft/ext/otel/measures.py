"""Metrics of a host: runs, attempts and commits. Labels come from closed lists, as in the metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider

from weft.ext.otel.span_sink import SCOPE, VERSION
from weft.runtime.run.actor import Actor
from weft.runtime.run.draft import Draft
from weft.runtime.service import RunService

if TYPE_CHECKING:
    from weft.agents.models.meter import ModelCounts
    from weft.runtime.worker.tool_meter import ToolCounts

_STARTED = b'{"kind":"run_started"'
_TASK = b'{"kind":"task_'
_OVER = ("completed", "failed", "cancelled")


class Measures:
    """Counts in plain numbers; OpenTelemetry asks for them when it sends."""

    def __init__(self, provider: MeterProvider, service: RunService) -> None:
        self._service = service
        self._started = 0
        self._over = dict.fromkeys(_OVER, 0)
        self._attempts = {"succeeded": 0, "failed": 0, "lost": 0}
        meter = provider.get_meter(SCOPE, VERSION)
        meter.create_observable_counter("weft.runs.started", [self._read_started], "{run}", "Runs that began here.")
        meter.create_observable_counter("weft.runs.ended", [self._read_over], "{run}", "Runs that ended, by status.")
        meter.create_observable_counter(
            "weft.steps.attempts", [self._read_attempts], "{attempt}", "Results of attempts, by outcome."
        )
        meter.create_observable_gauge("weft.runs.in_memory", [self._read_resident], "{run}", "Runs in memory here.")
        meter.create_observable_gauge(
            "weft.steps.in_flight", [self._read_flights], "{attempt}", "Attempts handed out here."
        )
        meter.create_observable_counter(
            "weft.model.calls", [self._read_calls], "{call}", "Calls of models, by outcome."
        )
        meter.create_observable_counter("weft.model.tokens", [self._read_tokens], "{token}", "Tokens, by kind.")
        meter.create_observable_counter("weft.model.money", [self._read_money], "1", "What models cost, by currency.")
        meter.create_observable_counter(
            "weft.tool.calls", [self._read_tool_calls], "{call}", "Tool calls of agents, by outcome."
        )
        meter.create_observable_counter(
            "weft.tool.time", [self._read_tool_seconds], "s", "Time that tool calls of agents took."
        )
        meter.create_observable_counter("weft.model.time", [self._read_seconds], "s", "Time that calls of models took.")
        self._commits = meter.create_histogram("weft.commit.duration", "s", "Duration of commits.")
        self._sizes = meter.create_histogram("weft.commit.runs", "{run}", "Runs in one commit.")

    def on_batch(self, drafts: Sequence[Draft], seconds: float) -> None:
        """Count a commit."""
        self._commits.record(seconds)
        self._sizes.record(len(drafts))

    def on_commit(self, _actor: Actor, draft: Draft) -> None:
        """Count the runs that began or ended, and the results of attempts."""
        if draft.seq == 0:
            self._started += draft.events[0].body.startswith(_STARTED)
        if draft.status in self._over:
            self._over[draft.status] += 1
        for event in draft.events:
            if event.body.startswith(_TASK):
                kind = event.body[len(_TASK) : event.body.index(b'"', len(_TASK))].decode()
                if kind in self._attempts:
                    self._attempts[kind] += 1

    def _read_started(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(self._started)]

    def _read_over(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(count, {"status": status}) for status, count in self._over.items()]

    def _read_attempts(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(count, {"outcome": outcome}) for outcome, count in self._attempts.items()]

    def _read_resident(self, _options: CallbackOptions) -> Iterable[Observation]:
        local = self._service.local
        return [Observation(len(local.all()) if local is not None else 0)]

    def _models(self) -> Mapping[str, ModelCounts]:
        work = self._service.work
        return work.model_counts() if work is not None else {}

    def _read_calls(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(count, {"model": alias, "outcome": outcome})
            for alias, counts in self._models().items()
            for outcome, count in counts.calls.items()
        ]

    def _read_tokens(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(count, {"model": alias, "kind": kind})
            for alias, counts in self._models().items()
            for kind, count in counts.tokens.items()
        ]

    def _read_money(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(millionths / 1_000_000, {"model": alias, "currency": currency})
            for alias, counts in self._models().items()
            for currency, millionths in counts.money.items()
        ]

    def _tools(self) -> Mapping[str, ToolCounts]:
        work = self._service.work
        return work.tools.counts if work is not None else {}

    def _read_tool_calls(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(count, {"tool": tool, "outcome": outcome})
            for tool, counts in self._tools().items()
            for outcome, count in counts.calls.items()
        ]

    def _read_tool_seconds(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(counts.seconds, {"tool": tool}) for tool, counts in self._tools().items()]

    def _read_seconds(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(counts.seconds, {"model": alias}) for alias, counts in self._models().items()]

    def _read_flights(self, _options: CallbackOptions) -> Iterable[Observation]:
        work = self._service.work
        return [Observation(work.in_flight() if work is not None else 0)]
