"""The machines of a simulated world: processes with an engine, and bodies with something done to them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import traceback
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tests.sim.ledger import Ledger
from weft.authoring.app import App
from weft.authoring.app_catalogue import AppCatalogue
from weft.core.ids import HostId
from weft.core.run.env import MissingInputs
from weft.errors import Critical, StoreError
from weft.ports.boundary import ProcessDied
from weft.ports.definitions import Definition
from weft.ports.store import Store
from weft.runtime.host import Host
from weft.runtime.programs import AnyProgram
from weft.runtime.run.actor import Actor
from weft.runtime.run.log_reading import LogReading
from weft.runtime.run.ports import RunPorts
from weft.runtime.service import RunService
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.flight import Flight
from weft.steps.task import Executor, StepBody
from weft.testing.clock import InlineExecutor, SimClock
from weft.testing.loop import Process

if TYPE_CHECKING:
    from tests.sim.cluster import Cluster

HOUR = 3600.0


class Flake(Exception):
    """What bodies are made to throw."""


class Machine:
    """A machine: it has a process, or has lost it."""

    def __init__(self, cluster: Cluster, index: int) -> None:
        self.cluster = cluster
        self.index = index
        self.boots = 0
        skew = cluster.swarm.skew_ms
        self.clock = SimClock(cluster.loop, skew_ms=cluster.random.randint(-skew, skew))
        self.process = Process("none")
        self.process.alive = False
        self.host: SimHost
        self.service: RunService
        self.ready = False
        self.stopping = False

    def boot(self) -> None:
        """A new process: nothing of the old one is left but what the store has."""
        cluster = self.cluster
        self.boots += 1
        self.ready = self.stopping = False
        self.process = Process(f"h{self.index}.{self.boots}")
        self.process.watchers.append(self._fell)
        self.process.context.copy().run(self._open)
        cluster.hosts_built.append(self.host)
        self.host.commits.watch(partial(cluster.ledger.heard, self.host))
        cluster.ledger.note("boot", self.process.name, self.host.id[-6:])
        self.process.context.copy().run(cluster.loop.create_task, self._start())

    def _open(self) -> None:
        cluster = self.cluster
        store = cast("Store", cluster.open_store(self.index))
        given = Surroundings(
            store=store,
            clock=self.clock,
            ids=cluster.ids,
            executor=InlineExecutor(),
            settings=cluster.swarm.settings,
            wrap_body=Book(cluster, self).watched,
        )
        lacks = cluster.swarm.lacks if self.index else ()
        self.service = RunService(store, self.clock, cluster.ids)
        self.host = SimHost(given, PartOfApp(cluster.cast.app, lacks), self.service, cluster.ledger)

    async def _start(self) -> None:
        try:
            await self.host.start()
        except StoreError:
            self.process.die()
            return
        self.ready = True

    async def stop(self) -> None:
        """The way that is asked for: drain, hand over, exit."""
        self.stopping = True
        self.ready = False
        with contextlib.suppress(StoreError):
            await self.host.stop()
        self.process.die()

    def _fell(self) -> None:
        """Somebody restarts it after a while."""
        cluster = self.cluster
        self.ready = False
        cluster.ledger.note("down", self.process.name)
        if cluster.random.random() < 0.3:
            cluster.store.content.hosts.pop(self.host.id, None)
        cluster.later(cluster.random.uniform(0.0, 6.0) if cluster.chaotic else 0.1, self.boot)


class SimHost(Host):
    """Notes when a decision had to wait."""

    def __init__(self, given: Surroundings, catalogue: Any, service: RunService, ledger: Ledger) -> None:
        self.ledger = ledger
        super().__init__(given, catalogue, service)

    def _run_ports(self) -> RunPorts:
        return dataclasses.replace(super()._run_ports(), fetching=self)

    def fetch(self, actor: Actor, missing: MissingInputs) -> None:
        self.ledger.reached["a decision waited for a blob"] += 1
        self.fetcher.fetch(actor, missing)

    def fetch_blobs(self, actor: Actor, digests: set[str]) -> None:
        self.fetcher.fetch_blobs(actor, digests)

    def read_log(self, actor: Actor, reading: LogReading) -> None:
        self.fetcher.read_log(actor, reading)

    def read_inputs(self, actor: Actor, reading: LogReading, missing: MissingInputs) -> None:
        self.ledger.reached["a patch waited for a blob"] += 1
        self.fetcher.read_inputs(actor, reading, missing)


class PartOfApp(AppCatalogue):
    """What a host has loaded: all but some steps, and some versions (``order@2``)."""

    _made: ClassVar[dict[str, dict[tuple[str, str], Definition]]] = {}
    """The definitions of an app do not change, and there are many boots: they are worked out once."""

    def __init__(self, app: App, lacks: Sequence[str]) -> None:
        super().__init__(app.registered)
        self._lacks = lacks
        self._definitions = self._made.setdefault(app.url, {})
        self._own = super().programs()

    def programs(self) -> list[tuple[str, str]]:
        found = dict.fromkeys([*self._own, *self._programs])
        return [(name, version) for name, version in found if f"{name}@{version}" not in self._lacks]

    def program(self, workflow: str, version: str) -> AnyProgram | None:
        return None if f"{workflow}@{version}" in self._lacks else super().program(workflow, version)

    def catalogue(self) -> PartOfApp:
        return self

    def step(self, name: str) -> StepBody | None:
        return None if name in self._lacks else super().step(name)

    def steps(self) -> list[str]:
        return [name for name in super().steps() if name not in self._lacks]


class ThrottledLog(logging.Handler):
    """What the engine itself calls an error is one."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(logging.ERROR)
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ProcessDied):
            return
        where = "".join(traceback.format_exception(error)[-3:]) if error is not None else ""
        self._ledger.breach(f"the engine says: {record.getMessage()} {error!r} {where}")


class Book:
    """What is done to bodies, and where it is written down."""

    def __init__(self, cluster: Cluster, host: Machine) -> None:
        self._cluster = cluster
        self._host = host

    def watched(self, flight: Flight) -> StepBody | None:
        return None if flight.body is None else Body(self._cluster, self._host.host.id, flight)


class Body:
    """A step body with something done to it."""

    def __init__(self, cluster: Cluster, host: HostId, flight: Flight) -> None:
        assert flight.body is not None
        self.name = flight.body.name
        self._inner = flight.body
        self._cluster = cluster
        self._host = host
        self._flight = flight

    def is_final(self, error: BaseException) -> bool:
        return self._inner.is_final(error)

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        cluster, ledger, flight = self._cluster, self._cluster.ledger, self._flight
        ledger.began(flight, self._host)
        ledger.reached["body of another host's run"] += flight.offer is not None
        mood = cluster.swarm.moods.draw(cluster.swarm.random.random())
        if mood:
            ledger.reached[f"mood {mood}"] += 1
        if mood == "throw_before":
            raise Flake("before")
        if mood == "die_before":
            await cluster.die()
        if mood == "slow":
            await asyncio.sleep(cluster.swarm.random.uniform(0, 1.5))
        if mood == "hang" and flight.effect.policy.timeout_ms:
            await asyncio.sleep(HOUR)
        if self.name == "stubborn" and flight.run_id not in cluster.mended:
            raise Critical("not mended yet")
        try:
            output = await self._inner.perform(given, executor)
        except Exception as error:
            ledger.ended(flight, self._host, type(error).__name__)
            raise
        ledger.ended(flight, self._host, "returned" if mood != "throw_after" else "flaked")
        if mood == "throw_after":
            raise Flake("after")
        if mood == "die_after":
            await cluster.die()
        return output
