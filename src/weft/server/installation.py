"""Metrics about the installation: its store, its hosts, and work that nobody does. Read when metrics are scraped.

Every host reports the same about the store, so that one host is enough to see it. No name that a user chose becomes a
label. While the store cannot be read, these metrics are missing, apart from ``weft_store_writable``.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import version

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from weft.core.ids import RunUid
from weft.errors import StoreError, WeftError
from weft.ports.run_query import RunQuery
from weft.ports.store import OPEN_STATUSES, OVER_STATUSES
from weft.runtime.service import RunService

MEASURE_SECONDS = 1.0
"""The store is read at most this often, however often metrics are scraped."""
ANSWER_SECONDS = 5.0
BEAT_SECONDS = 2.0
"""If a heartbeat takes the store longer than this, it cannot be written."""
UNREADABLE_MAX = 1_000
"""The largest number of unreadable runs that is counted."""
UNCLAIMED_MAX = 200


class StoreState(msgspec.Struct, frozen=True, kw_only=True):
    """What one reading of the store found."""

    runs: dict[str, int]
    hosts: int
    gone: int
    stalled_seconds: float
    unreadable: int
    waiting: int
    running: int
    waiting_seconds: float
    size_bytes: int | None
    free_bytes: int | None


class Unclaimed:
    """Measures for how long runs have had something to do and no host, from when this process first saw it."""

    def __init__(self) -> None:
        self._since: dict[RunUid, float] = {}

    def seconds(self, uids: Collection[RunUid], now: float) -> float:
        """Return for how long the first of these runs has been among them. Times are monotonic."""
        self._since = {uid: self._since.get(uid, now) for uid in uids}
        return now - min(self._since.values(), default=now)


class Installation(Collector):
    """Reads the state of the installation, and passes it to a Prometheus registry."""

    def __init__(self) -> None:
        self._unclaimed = Unclaimed()
        self._measured_at = -math.inf
        self._state: StoreState | None = None
        self._writable = False
        self._attempt_seconds = 0.0
        self._taken_over = 0
        self._lost = 0

    async def measure(self, runs: RunService) -> None:
        """Read the state of the installation, unless it was just read."""
        now = time.monotonic()
        if runs.work is not None:
            self._attempt_seconds, self._taken_over = runs.work.oldest_attempt_seconds(), runs.work.taken_over
            self._lost = runs.work.lost_from_wals
        if now - self._measured_at < MEASURE_SECONDS:
            return
        self._measured_at = now
        self._writable = not await store_trouble(runs)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self._state = await self._read(runs, now)
        except (StoreError, TimeoutError):
            self._state = None

    async def _read(self, runs: RunService, now: float) -> StoreState:
        store = runs.store
        details = await store.details()
        hosts = await store.hosts.list_all()
        queues = await store.tasks.queues()
        waiting_since = min((queue.since for queue in queues if queue.since is not None), default=None)
        unclaimed = await runs.work.unclaimed(UNCLAIMED_MAX) if runs.work is not None else ()
        faulty = RunQuery(faulty=True, internal=True, statuses=OPEN_STATUSES)
        (unreadable,) = await store.directory.count([faulty], limit=UNREADABLE_MAX)
        return StoreState(
            runs=dict(await store.directory.counts()),
            hosts=sum(not host.gone for host in hosts),
            gone=sum(host.gone for host in hosts),
            stalled_seconds=self._unclaimed.seconds(unclaimed, now),
            unreadable=unreadable.count,
            waiting=sum(queue.waiting for queue in queues),
            running=sum(queue.running for queue in queues),
            waiting_seconds=max(0, runs.clock.now_ms() - waiting_since) / 1000 if waiting_since is not None else 0.0,
            size_bytes=details.size_bytes,
            free_bytes=details.free_bytes,
        )

    def collect(self) -> Iterable[Metric]:
        yield InfoMetricFamily("weft_build", "The version of Weft.", {"version": version("weft")})
        yield _gauge("weft_store_writable", "Whether this host can write to the store.", float(self._writable))
        yield _gauge("weft_attempt_age_seconds", "Age of the oldest attempt under way here.", self._attempt_seconds)
        taken = CounterMetricFamily("weft_takeovers", "Runs that this host took over from hosts that were gone.")
        taken.add_metric([], self._taken_over)
        yield taken
        lost = CounterMetricFamily(
            "weft_hot_lost", "Runs of hosts that were gone whose last events were lost with Redis, or may be."
        )
        lost.add_metric([], self._lost)
        yield lost
        if self._state is not None:
            yield from _store_metrics(self._state)


async def store_trouble(runs: RunService) -> str:
    """Return why this host cannot write to the store now; empty if it can."""
    trouble = runs.trouble()
    if trouble is not None:
        return trouble.message
    if runs.local is None:
        return ""
    try:
        async with asyncio.timeout(BEAT_SECONDS):
            await runs.store.hosts.beat(runs.local.host)
    except TimeoutError:
        return "The store does not answer."
    except WeftError as error:
        return error.message
    return ""


def _store_metrics(state: StoreState) -> Iterator[Metric]:
    statuses = {status: state.runs.get(status, 0) for status in (*OPEN_STATUSES, *OVER_STATUSES)}
    yield _gauges("weft_runs", "Runs in the store.", "status", statuses)
    yield _gauges("weft_hosts", "Hosts of the store.", "state", {"alive": state.hosts, "gone": state.gone})
    yield _gauge(
        "weft_stalled_seconds",
        "For how long the longest waiting run has had something to do and no host, as seen from here.",
        state.stalled_seconds,
    )
    yield _gauge("weft_runs_unreadable", "Runs whose row and log do not agree; they are set aside.", state.unreadable)
    shared = {"waiting": state.waiting, "running": state.running}
    yield _gauges("weft_shared_tasks", "Tasks in the queues that hosts and workers share.", "state", shared)
    yield _gauge("weft_shared_task_age_seconds", "Age of the oldest task that waits there.", state.waiting_seconds)
    if state.size_bytes is not None:
        yield _gauge("weft_store_bytes", "Size of the store.", state.size_bytes)
    if state.free_bytes is not None:
        yield _gauge("weft_store_free_bytes", "Free space on the disk of the store, if it is local.", state.free_bytes)


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, value=value)


def _gauges(name: str, about: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, about, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
