"""Worlds with two hosts and one schedule, around a change of the clocks, in which much goes wrong.

Hosts die and freeze, their clocks jump, the store loses answers, nobody hosts anything for a while, and people pause,
resume and trigger. All of it follows from the seed. In the end every nominal time must have been decided exactly once.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Raw

import weft
from tests.schedule.wall import expected
from weft.authoring.app_catalogue import AppCatalogue
from weft.core import events as e
from weft.core.ids import RunId
from weft.core.schedule.calendar import ATTRIBUTE, schedule_id
from weft.core.schedule.state import ScheduleState
from weft.errors import Refused, StoreError, WeftError
from weft.runtime.host import Host
from weft.runtime.schedules import ScheduleService
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.stores.memory import MemoryStore
from weft.testing.clock import EPOCH_MS, InlineExecutor, SeededIds, SimClock
from weft.testing.faults import FaultyStore, Rates
from weft.testing.loop import Process, make_loop

ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago")
HOURS = 5
CRONS = (
    "30 2 * * *", "30 1 * * *", "15 0,1,2,3 * * *", "0,30 1-3 * * *", "45 1,2,23 * * *", "*/20 * * * *",
    "10 * * * *", "*/30 1-4 * * *", "5,25,45 * * * *",
)  # fmt: skip
SETTINGS = Settings(
    lease_seconds=600.0, poll_seconds=300.0, scan_seconds=300.0, look_seconds=120.0, idle_seconds=90.0, health_seconds=0
)

app = weft.App("memory://")


@app.workflow
async def job(ctx: weft.Context, seed: int) -> None:
    """Take a while, and fail now and then."""
    luck = random.Random(f"{seed} {ctx.run_id}")
    await ctx.sleep(luck.choice((0, 60, 600, 3_000)))
    if luck.random() < 0.3:
        raise ValueError("it fails")


@cache
def changes(zone: str) -> list[int]:
    """When the clocks of a zone change in 2026, in milliseconds."""
    there = ZoneInfo(zone)
    found, moment = [], datetime(2026, 1, 1, tzinfo=UTC)
    before = moment.astimezone(there).utcoffset()
    while moment.year == 2026:
        moment += timedelta(minutes=30)
        offset = moment.astimezone(there).utcoffset()
        if offset != before:
            found.append(int(moment.timestamp() * 1000))
            before = offset
    return found


class Swarm:
    """What goes wrong, and how often: the source of faults of all stores of a world."""

    def __init__(self, chance: random.Random) -> None:
        self.random = chance
        self.seen: Counter[str] = Counter()
        rate = chance.choice((0.0, 0.005, 0.03))
        self.rates = Rates(before=rate, after=rate, late=rate / 2, slow=rate, die=rate / 5)

    def heal(self) -> None:
        self.rates = Rates()


class Machine:
    """A machine with a host, or without one."""

    def __init__(self, world: ScheduleWorld, index: int) -> None:
        self.world = world
        self.index = index
        self.clock = SimClock(world.loop, skew_ms=world.begin - EPOCH_MS)
        self.boots = 0
        self.process = Process("none")
        self.process.alive = False
        self.service: RunService | None = None

    def boot(self) -> None:
        self.boots += 1
        self.process = Process(f"h{self.index}.{self.boots}")
        self.process.context.copy().run(self._open)
        self.process.context.copy().run(self.world.loop.create_task, self._start())

    def _open(self) -> None:
        world = self.world
        store: Any = FaultyStore(world.store.share(), world.loop, world.swarm)
        self.service = RunService(store, self.clock, world.ids)
        given = Surroundings(store=store, clock=self.clock, ids=world.ids, executor=InlineExecutor(), settings=SETTINGS)
        self.host = Host(given, AppCatalogue(app.registered), self.service)

    async def _start(self) -> None:
        try:
            await self.host.start()
        except StoreError:
            self.process.die()


class ScheduleWorld:
    """One world."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        chance = self.random = random.Random(f"schedule world {seed}")
        self.loop = make_loop(seed)
        self.ids = SeededIds(self.loop, seed)
        self.store = MemoryStore()
        self.swarm = Swarm(random.Random(f"faults {seed}"))
        zone = ZONES[seed % len(ZONES)]
        change = chance.choice(changes(zone))
        self.begin = change - change % 60_000 - chance.randrange(20, 200) * 60_000 + chance.randrange(60_000)
        self.machines = [Machine(self, 0), Machine(self, 1)]
        self.spec = self._drawn(zone)
        self.outsider = RunService(self.store.share(), self._clock(), self.ids)  # type: ignore[arg-type]
        self.schedules = ScheduleService(self.outsider)
        self.triggered: set[str] = set()

    def _clock(self) -> SimClock:
        return SimClock(self.loop, skew_ms=self.begin - EPOCH_MS)

    def _drawn(self, zone: str) -> e.ScheduleSpec:
        chance = self.random
        every_ms = chance.choice((7, 20, 55)) * 60_000 if chance.random() < 0.2 else 0
        return e.ScheduleSpec(
            workflow="job",
            input=Raw(b'{"seed":%d}' % self.seed),
            cron="" if every_ms else chance.choice(CRONS),
            every_ms=every_ms,
            timezone=zone,
            dst=chance.choice(("run", "skip")),
            overlap=chance.choice(("skip", "queue", "cancel_old", "allow")),
            catch_up_ms=chance.choice((0, 60_000, 600_000, 3_600_000, -1)),
            jitter_ms=chance.choice((0, 0, 300_000)),
            pause_after=chance.choice((0, 0, 3)),
        )

    # --- the play -------------------------------------------------------------------------------------------------

    def play(self) -> None:
        self.loop.run_until_complete(self._play())

    async def _play(self) -> None:
        await self.schedules.put("job", self.spec)
        for machine in self.machines:
            machine.boot()
        tasks = [self.loop.create_task(self._monkey()), self.loop.create_task(self._people())]
        await asyncio.sleep(HOURS * 3600)
        for task in tasks:
            task.cancel()
        await self._heal()

    async def _heal(self) -> None:
        self.swarm.heal()
        now = self._clock().now_ms()
        for machine in self.machines:
            machine.clock.skew_ms = self.begin - EPOCH_MS
            if machine.process.frozen:
                self.loop.thaw(machine.process)
            if not machine.process.alive:
                machine.boot()
        await asyncio.sleep(2_000)
        await self._tell("resume")
        for _ in range(8):
            state = await self.state()
            if not state.open_runs and not state.queued and state.status == "running":
                break
            await asyncio.sleep(900)
        self.healed = now

    async def _monkey(self) -> None:
        while True:
            await asyncio.sleep(self.random.expovariate(1 / 1500))
            machine = self.random.choice(self.machines)
            luck = self.random.random()
            if luck < 0.15:
                await self._outage()
            elif not machine.process.alive:
                machine.boot()
            elif luck < 0.5:
                self.swarm.seen["kill"] += 1
                machine.process.die()
            elif luck < 0.65:
                self._freeze(machine)
            else:
                self.swarm.seen["jump"] += 1
                machine.clock.jump(self.random.choice((-1, 1)) * self.random.randrange(1_000, 1_500_000))

    async def _outage(self) -> None:
        self.swarm.seen["outage"] += 1
        for machine in self.machines:
            machine.process.die()
        await asyncio.sleep(self.random.uniform(60, 5_400))
        for machine in self.machines:
            machine.boot()

    def _freeze(self, machine: Machine) -> None:
        self.swarm.seen["freeze"] += 1
        process = machine.process
        process.frozen = True
        self.loop.call_later(self.random.uniform(10, 900), self.loop.thaw, process)

    async def _people(self) -> None:
        while True:
            await asyncio.sleep(self.random.expovariate(1 / 4000))
            luck = self.random.random()
            if luck < 0.3:
                with contextlib.suppress(WeftError):
                    self.triggered.add(await self.schedules.trigger("job"))
            elif luck < 0.7:
                await self._tell("pause")
                await asyncio.sleep(self.random.uniform(10, 3_600))
                await self._tell("resume")

    async def _tell(self, what: str) -> None:
        with contextlib.suppress(Refused):
            await getattr(self.schedules, what)("job")

    # --- the verdict ----------------------------------------------------------------------------------------------

    async def state(self) -> ScheduleState:
        row = await self.outsider.row(RunId(schedule_id("job")))
        state = await self.outsider.reader.state(row)
        assert isinstance(state, ScheduleState)
        return state

    async def _events(self) -> list[e.AnyEvent]:
        row = await self.outsider.row(RunId(schedule_id("job")))
        return [e.decode(stored.body) async for stored in self.outsider.reader.events(row)]

    def breaches(self) -> list[str]:
        """What is wrong with this world in the end."""
        found = [f"an error: {error!r}" for error in self.loop.errors]
        return found + self.loop.run_until_complete(self._breaches())

    async def _breaches(self) -> list[str]:
        found: list[str] = []
        events, state = await self._events(), await self.state()
        declared = next(event for event in events if isinstance(event, e.ScheduleDeclared))
        times = expected(self.spec, declared.next - 1, state.next - 1)
        settled = Counter(self._settled(events, times, found))
        settled.update(run.nominal for run in state.queued if run.run_id not in self.triggered)
        wrong = [nominal for nominal in times if settled[nominal] != 1]
        found += [f"{_shown(nominal)} was decided {settled[nominal]} times" for nominal in wrong]
        found += [f"{_shown(nominal)} is no nominal time" for nominal in settled.keys() - set(times)]
        if state.queued and not state.open_runs and state.status == "running":
            found.append(f"queued, and nothing is open: {state.queued[:3]}")
        if state.status == "running" and state.next <= self.healed:
            found.append(f"it stopped at {_shown(state.next)}")
        return found + self._wrong_runs(events)

    def _settled(self, events: list[e.AnyEvent], times: list[int], found: list[str]) -> list[int]:
        """The nominal times that were fired, missed or found. Triggers are not among them."""
        settled: list[int] = []
        for event in events:
            match event:
                case e.ScheduleFired(nominal=nominal, run_id=run_id) if run_id not in self.triggered:
                    settled.append(nominal)
                case e.ScheduledRunFound(run_id=run_id):
                    found.append(f"{run_id} was there already")
                case e.ScheduleMissed(run_id=run_id) if run_id in self.triggered:
                    pass
                case e.ScheduleMissed(first=first, last=last, count=count):
                    covered = [nominal for nominal in times if first <= nominal <= last]
                    settled += covered
                    if len(covered) != count:
                        found.append(f"missed {count}, and there are {len(covered)}")
        return settled

    def _wrong_runs(self, events: list[e.AnyEvent]) -> list[str]:
        fired = {event.run_id: event for event in events if isinstance(event, e.ScheduleFired)}
        runs = {run.id: run for run in self.store.content.runs.values() if ATTRIBUTE in run.attributes}
        found = [f"{run_id} was fired and is not there" for run_id in fired.keys() - runs.keys()]
        found += [f"{run_id} is there and was not fired" for run_id in runs.keys() - fired.keys()]
        if len(fired) != sum(isinstance(event, e.ScheduleFired) for event in events):
            found.append("a run was fired twice")
        for run_id, run in runs.items():
            started = e.decode(run.events[0].body) if run.events else None
            if not isinstance(started, e.RunStarted) or run_id not in fired:
                continue
            if started.scheduled_at != fired[run_id].nominal or run.new.parent is not None or started.parent:
                found.append(f"{run_id} is not as its schedule started it")
        return found


def _shown(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}Z"


def failures(seeds: range, seen: Counter[str] | None = None) -> dict[int, list[str]]:
    """Play these worlds. Returns what is wrong, by seed."""
    found = {}
    for seed in seeds:
        world = ScheduleWorld(seed)
        world.play()
        wrong = world.breaches()
        if wrong:
            found[seed] = wrong
        if seen is not None:
            seen.update(world.swarm.seen)
        world.loop.close()
    return found
