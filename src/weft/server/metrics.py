"""What happens here, in numbers for Prometheus. Labels come from closed lists: nothing a user names becomes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from weft.ports.store import OPEN_STATUSES, OVER_STATUSES
from weft.server.counters import Counter, CounterCollector, Histogram

if TYPE_CHECKING:
    from weft.runtime.engine import Engine
    from weft.runtime.run.actor import Actor
    from weft.runtime.run.draft import Draft

MEDIA = CONTENT_TYPE_PLAIN_0_0_4
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
APPENDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
BYTES = (256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304)
_KIND = len('{"kind":"')
_DEAD = ("failure_raised",)


class Metrics:
    """One set per API, in a registry of its own: an application may have others."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self._transitions = Counter("weft_transitions", "Events committed here.", ["kind"])
        self._tasks = Counter("weft_tasks", "Attempts that ended, by how.", ["outcome"])
        self._retries = Counter("weft_retries", "Attempts that will be made again.")
        self._letters = Counter("weft_dead_letters", "Failures that nothing took.")
        self._hop = Histogram("weft_hop_seconds", "From a decision to its being durable.", SECONDS)
        self._commit = Histogram("weft_commit_seconds", "Commits.", SECONDS)
        self._commit_runs = Histogram("weft_commit_runs", "Runs in one commit.", APPENDS)
        self._commit_bytes = Histogram("weft_commit_bytes", "Bytes of events in one commit.", BYTES)
        self._requests = Counter("weft_requests", "Answers of the API.", ["route", "status"])
        self._took = Histogram("weft_request_seconds", "Requests that are answered at once.", SECONDS)
        registry.register(
            CounterCollector(
                self._transitions,
                self._tasks,
                self._retries,
                self._letters,
                self._hop,
                self._commit,
                self._commit_runs,
                self._commit_bytes,
                self._requests,
                self._took,
            )
        )
        self._runs = Gauge("weft_runs", "Runs in the store.", ["status"], registry=registry)
        self._resident = Gauge("weft_runs_in_memory", "Runs in memory here.", registry=registry)
        self._flights = Gauge("weft_tasks_in_flight", "Attempts handed out here.", registry=registry)
        self._age = Gauge("weft_queue_age_seconds", "Age of the oldest work that waits for room.", registry=registry)
        self._live = Gauge("weft_live_clients", "Clients that listen or wait for work.", registry=registry)

    def attach(self, engine: Engine) -> None:
        self._clock = engine.clock
        engine.commits.observe(self._observed)
        engine.committer.measured = self._committed

    # --- what the engine tells ------------------------------------------------------------------------------------

    def _observed(self, actor: Actor, draft: Draft) -> None:
        now = self._clock.now_ms()
        self._hop.add(max(0, now - draft.events[0].at) / 1000)
        for event in draft.events:
            body = event.body
            kind = body[_KIND : body.index(b'"', _KIND)].decode()
            self._transitions.add(kind)
            if kind.startswith("task_"):
                self._task(kind, body)
            elif kind in _DEAD:
                self._letters.add()

    def _task(self, kind: str, body: bytes) -> None:
        if kind == "task_scheduled":
            return
        self._tasks.add(kind.removeprefix("task_"))
        if b'"retry_at":' in body or kind == "task_lost":
            self._retries.add()

    def _committed(self, drafts: Sequence[Draft], seconds: float) -> None:
        self._commit.add(seconds)
        self._commit_runs.add(len(drafts))
        self._commit_bytes.add(sum(draft.bytes for draft in drafts))

    # --- what the API tells ---------------------------------------------------------------------------------------

    def answered(self, route: str, status: int, seconds: float | None) -> None:
        """A request was answered; ``seconds`` None: it was one that waits on purpose."""
        self._requests.add(route, str(status))
        if seconds is not None:
            self._took.add(seconds)

    def listening(self, change: int) -> None:
        self._live.inc(change)

    async def page(self, engine: Engine, age_seconds: float) -> bytes:
        """All numbers, as they are scraped."""
        counts = await engine.store.directory.counts()
        for status in (*OPEN_STATUSES, *OVER_STATUSES):
            self._runs.labels(status).set(counts.get(status, 0))
        self._resident.set(len(engine.runs.actors))
        self._flights.set(sum(len(flights) for flights in engine.worker.flights.values()))
        self._age.set(age_seconds)
        return generate_latest(self.registry)
