"""Metrics for Prometheus, and log lines about runs that may need attention.

Labels come from closed lists; no name that a user chose becomes a label. Counters and histograms need no locks, because
only the event loop of the server adds to them. They become Prometheus metrics when they are scraped.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from weft.core import events as e
from weft.core.durations import format_ms
from weft.server.installation import Installation
from weft.server.model_metrics import ModelCollector, ToolCollector
from weft.server.series import Series
from weft.server.stream_metrics import StreamCollector

if TYPE_CHECKING:
    from weft.runtime.run.actor import Actor
    from weft.runtime.run.draft import Draft
    from weft.runtime.service import RunService

log = logging.getLogger("weft.runs")

MEDIA = CONTENT_TYPE_PLAIN_0_0_4
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
APPENDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
BYTES = (256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304)
_KIND = len('{"kind":"')
_DEAD_LETTER_EVENTS = ("failure_raised",)
_SCHEDULE_EVENTS = ("schedule_fired", "schedule_missed", "scheduled_run_found")
_LOGGED_EVENTS = ("task_failed", "run_failed", "run_held")
_UNDO = "!undo"


class Counter:
    """Counts how often something happened, by the values of its labels."""

    def __init__(self, name: str, about: str, labels: Sequence[str] = ()) -> None:
        self._about = (name, about)
        self._labels = list(labels)
        self.counts: dict[tuple[str, ...], int] = {} if labels else {(): 0}

    def add(self, *values: str, count: int = 1) -> None:
        """Add to the count for these values of the labels."""
        self.counts[values] = self.counts.get(values, 0) + count

    def metric(self) -> Metric:
        """Return the counts as a Prometheus metric."""
        family = CounterMetricFamily(*self._about, labels=self._labels)
        for values, count in self.counts.items():
            family.add_metric(values, count)
        return family


class Histogram:
    """Counts values in buckets by size."""

    def __init__(self, name: str, about: str, bounds: Sequence[float]) -> None:
        self._about = (name, about)
        self._bounds = list(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def metric(self) -> Metric:
        """Return the counts as a Prometheus metric."""
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        family = HistogramMetricFamily(*self._about)
        family.add_metric([], list(zip(names, accumulate(self._counts), strict=True)), sum_value=self._sum)
        return family


class CounterCollector(Collector):
    """Passes counters and histograms to a Prometheus registry."""

    def __init__(self, *parts: Counter | Histogram) -> None:
        self._parts = parts

    def collect(self) -> Iterable[Metric]:
        return [part.metric() for part in self._parts]


class _ProcessRegistry(CollectorRegistry):
    """A registry that adds the number of this process as a label, because others answer at the same address."""

    def __init__(self, registry: CollectorRegistry, process: str) -> None:
        super().__init__()
        self._registry = registry
        self._process = process

    def collect(self) -> Iterable[Metric]:
        for family in self._registry.collect():
            family.samples = [
                sample._replace(labels={**sample.labels, "process": self._process}) for sample in family.samples
            ]
            yield family


class Telemetry:
    """The metrics of one API, in a registry of its own, and its log lines about runs."""

    def __init__(self) -> None:
        self.series = Series()
        """What this process did in the last hour."""
        self.process = ""
        """The number of this process, if several answer at one address. It becomes a label of every metric."""
        registry = self.registry = CollectorRegistry()
        self._transitions = Counter("weft_transitions", "Events committed here.", ["kind"])
        self._tasks = Counter("weft_tasks", "Attempts that ended, by outcome.", ["outcome"])
        self._retries = Counter("weft_retries", "Attempts that will be made again.")
        self._letters = Counter("weft_dead_letters", "Failures that no error route handled.")
        self._times = Counter("weft_scheduled_times", "Nominal times of schedules, by outcome.", ["outcome"])
        self._hop = Histogram("weft_hop_seconds", "Time from a decision until it is durable.", SECONDS)
        self._commit = Histogram("weft_commit_seconds", "Duration of commits.", SECONDS)
        self._commit_runs = Histogram("weft_commit_runs", "Runs in one commit.", APPENDS)
        self._commit_bytes = Histogram("weft_commit_bytes", "Bytes of events in one commit.", BYTES)
        self._requests = Counter("weft_requests", "Answers of the API.", ["route", "status"])
        self._request_seconds = Histogram("weft_request_seconds", "Requests that are answered at once.", SECONDS)
        registry.register(
            CounterCollector(
                self._transitions,
                self._tasks,
                self._retries,
                self._letters,
                self._times,
                self._hop,
                self._commit,
                self._commit_runs,
                self._commit_bytes,
                self._requests,
                self._request_seconds,
            )
        )
        self._models = ModelCollector()
        registry.register(self._models)
        self._tools = ToolCollector()
        registry.register(self._tools)
        self._streams = StreamCollector()
        registry.register(self._streams)
        self._installation = Installation()
        registry.register(self._installation)
        self._resident = Gauge("weft_runs_in_memory", "Runs in memory here.", registry=registry)
        self._flights = Gauge("weft_tasks_in_flight", "Attempts handed out here.", registry=registry)
        self._age = Gauge(
            "weft_queue_age_seconds", "Age of the oldest work that waits for a slot or memory.", registry=registry
        )
        self._live = Gauge("weft_live_clients", "Clients that listen or wait for work.", registry=registry)

    def attach(self, runs: RunService) -> None:
        """Count and log the commits of this host from now on."""
        self._clock = runs.clock
        self.series.turn(runs.clock.now_ms())
        runs.commits.observe(self._on_commit)
        if runs.work is not None:
            self._models.read = runs.work.model_counts
            self._tools.counts = runs.work.tools.counts
            self._streams.counts = runs.work.stream_counts
            runs.work.measure_commits(self._on_batch)

    # --- commits --------------------------------------------------------------------------------------------------

    def _on_commit(self, actor: Actor, draft: Draft) -> None:
        now = self._clock.now_ms()
        series = self.series
        if now >= series.ends:
            series.turn(now)
        self._hop.add(max(0, now - draft.events[0].at) / 1000)
        for event in draft.events:
            body = event.body
            kind = body[_KIND : body.index(b'"', _KIND)].decode()
            self._transitions.add(kind)
            if kind.startswith("task_"):
                self._count_task(kind, body)
            elif kind == "run_started":
                series.runs += 1
            elif kind in _DEAD_LETTER_EVENTS:
                self._letters.add()
            elif kind in _SCHEDULE_EVENTS:
                self._count_times(e.decode(body))
            if kind in _LOGGED_EVENTS:
                _log_event(actor.id, e.decode(body), event.at)

    def _count_task(self, kind: str, body: bytes) -> None:
        if kind == "task_scheduled":
            return
        self._tasks.add(kind.removeprefix("task_"))
        self.series.steps += 1
        if b'"retry_at":' in body or kind == "task_lost":
            self._retries.add()

    def _count_times(self, event: e.AnyEvent) -> None:
        if isinstance(event, e.ScheduleMissed):
            self._times.add(f"missed_{event.why}", count=event.count)
        else:
            self._times.add("fired" if isinstance(event, e.ScheduleFired) else "found")

    def _on_batch(self, drafts: Sequence[Draft], seconds: float) -> None:
        self._commit.add(seconds)
        self.series.commits.append(seconds)
        self._commit_runs.add(len(drafts))
        self._commit_bytes.add(sum(draft.size_bytes for draft in drafts))

    # --- requests -------------------------------------------------------------------------------------------------

    def count_request(self, route: str, status: int, seconds: float | None) -> None:
        """Count an answered request. ``seconds`` is None for a request that waits on purpose."""
        self._requests.add(route, str(status))
        if seconds is not None:
            self._request_seconds.add(seconds)

    def count_listeners(self, change: int) -> None:
        """Change the number of clients that listen or wait."""
        self._live.inc(change)

    async def render(self, runs: RunService, age_seconds: float) -> bytes:
        """Return all metrics in the format of Prometheus."""
        await self._installation.measure(runs)
        self._resident.set(len(runs.local.all()) if runs.local is not None else 0)
        self._flights.set(runs.work.in_flight() if runs.work is not None else 0)
        self._age.set(age_seconds)
        return generate_latest(_ProcessRegistry(self.registry, self.process) if self.process else self.registry)


def _log_event(run: str, event: e.AnyEvent, at: int) -> None:
    extra = {"run": run}
    match event:
        case e.RunFailedEvent(failure=failure):
            cause = f", caused by {failure.cause}" if failure.cause else ""
            log.error("weft: %s failed: %s%s", run, failure.brief(), cause, extra=extra)
        case e.RunHeld(code=code, message=message):
            log.error("weft: %s is held (%s): %s", run, code, message, extra=extra)
        case e.TaskFailed(failure=failure, attempt=attempt, retry_at=retry_at) if retry_at:
            log.warning(
                "weft: %s: attempt %d of %s failed, the next attempt is in %s: %s",
                run,
                attempt,
                failure.location or failure.step,
                format_ms(max(0, retry_at - at)),
                failure.brief(),
                extra={**extra, "step": failure.step},
            )
        case e.TaskFailed(failure=failure) if failure.location.endswith(_UNDO):
            undone = failure.location.removesuffix(_UNDO)
            extra["step"] = failure.step
            log.error("weft: %s: %s could not be undone: %s", run, undone, failure.brief(), extra=extra)
