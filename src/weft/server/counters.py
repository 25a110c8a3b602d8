"""Counters and histograms without locks: only the event loop of the server adds to them.

They become Prometheus metrics when Prometheus asks for them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


class Counter:
    """Counts how often something happened, by the values of its labels."""

    def __init__(self, name: str, about: str, labels: Sequence[str] = ()) -> None:
        self._about = (name, about)
        self._labels = list(labels)
        self.counts: dict[tuple[str, ...], int] = {} if labels else {(): 0}

    def add(self, *values: str) -> None:
        """Count one more with these values of the labels."""
        self.counts[values] = self.counts.get(values, 0) + 1

    def metric(self) -> Metric:
        """Return what was counted as a Prometheus metric."""
        family = CounterMetricFamily(*self._about, labels=self._labels)
        for values, count in self.counts.items():
            family.add_metric(values, count)
        return family


class Histogram:
    """Counts how large something was, in buckets."""

    def __init__(self, name: str, about: str, bounds: Sequence[float]) -> None:
        self._about = (name, about)
        self._bounds = list(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count one of this size."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def metric(self) -> Metric:
        """Return what was counted as a Prometheus metric."""
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        family = HistogramMetricFamily(*self._about)
        family.add_metric([], list(zip(names, accumulate(self._counts), strict=True)), sum_value=self._sum)
        return family


class CounterCollector(Collector):
    """Hands counters and histograms to a Prometheus registry."""

    def __init__(self, *parts: Counter | Histogram) -> None:
        self._parts = parts

    def collect(self) -> Iterable[Metric]:
        return [part.metric() for part in self._parts]
