"""Metrics of the tasks on Redis streams for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from weft.runtime.worker_streams.counts import Happened, StreamCounts


class StreamCollector(Collector):
    """Reads the counts of a host when they are scraped."""

    def __init__(self) -> None:
        self.counts: StreamCounts | None = None
        """The counts; None without Redis."""

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; none without Redis."""
        if self.counts is None:
            return
        tasks = CounterMetricFamily("weft_stream_tasks", "Tasks on Redis streams, by what happened.", labels=["what"])
        for what in get_args(Happened):
            tasks.add_metric([what], self.counts.happened[what])
        yield tasks
        works = GaugeMetricFamily("weft_streams_up", "Whether this host can use its Redis streams.")
        works.add_metric([], float(not self.counts.trouble))
        yield works
