"""One world: hosts that die, freeze and come back, users who do not give up, and a store that fails.

All of it follows from the seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from tests.sim.full import FullStore
from tests.sim.hosts import HOUR, Machine, SimHost, ThrottledLog
from tests.sim.hot import AwayStore, ObservedWals, SimHotStore, suit
from tests.sim.hot_ledger import HotLedger
from tests.sim.ledger import Ledger, ObservedLog
from tests.sim.redis import SimRedis, draw_redis
from tests.sim.swarm import Swarm, draw
from tests.sim.workflows import CODE, Cast
from weft.authoring.app_catalogue import AppCatalogue
from weft.authoring.handles import Handle
from weft.core import commands as c
from weft.core.graph.tokens import GraphState
from weft.core.ids import RunId, RunUid
from weft.errors import RunCancelled, RunFailed, StoreError, Unavailable, WeftError
from weft.observe.dead_letters import all_dead_letters
from weft.ports.boundary import ProcessDied, set_hook
from weft.runtime.local import LocalRuns
from weft.runtime.requests import send_request
from weft.runtime.service import RunService
from weft.runtime.start_support import StartOptions
from weft.steps.codec import Codec
from weft.stores.memory import MemoryStore
from weft.testing.clock import EPOCH_MS, SeededIds, SimClock
from weft.testing.loop import PROCESS, Process, make_loop

TURNS_MAX = 1_000_000
BURSTS = 0.1
"""How many starts come in a burst: written down first, and begun before the time until which they are put off."""
PUT_OFF_MS = 5_000
PATIENCE = 12.0
"""Seconds that a user waits for one answer before asking elsewhere."""
QUIET = 2.0
"""Seconds after which nothing more is expected of a world in which every run is over and every user content."""
_ANY: Codec[Any] = Codec.of(Any)


class Cluster:
    """See the module."""

    def __init__(self, seed: int, swarm: Swarm | None = None, cast: Cast = CODE) -> None:
        self.seed = seed
        self.cast = cast
        self.swarm = swarm or draw(seed, cast)
        self.random = random.Random(f"cluster-{seed}")
        self.loop = make_loop(seed)
        self.store = MemoryStore()
        self.ids = SeededIds(self.loop, seed)
        self.catalogue = AppCatalogue(cast.app.registered)
        """What nobody's version of the app lacks: for those who judge."""
        self.redis: SimRedis | None = None
        self.ledger = self._new_ledger()
        self.hosts_built: list[SimHost] = []
        self.ahead_ms = self.swarm.skew_ms
        """How far the time of any host ever was ahead."""
        self.hosts = [Machine(self, index) for index in range(self.swarm.hosts)]
        self.new_client()
        self.client_door = RunService(
            FullStore(self.share(), self.loop, self.swarm),
            SimClock(self.loop),
            self.ids,
        )
        self.chaotic = True
        self.healing: asyncio.Future[None] = self.loop.create_future()
        self.quiet_at = QUIET
        self.specs: dict[str, tuple[str, dict[str, Any]]] = {}
        self.results: list[tuple[str, Any]] = []
        """What those who waited for a run were told."""
        self.answers: list[tuple[str, Any]] = []
        """What those who sent a request were told."""
        self.users: list[asyncio.Task[None]] = []
        self.named: dict[str, str] = {}
        """Which name each message has."""
        self.mended: set[str] = set()
        """Runs whose stubborn steps no longer fail."""

    def new_client(self) -> None:
        """A program that only talks to the store; when it dies, another one is called."""
        self.client = Process("client")
        self.client.watchers.append(self.new_client)

    def _new_ledger(self) -> Ledger:
        if not self.cast.hot:
            return Ledger(self.loop, self.store.content, self.catalogue)
        ledger = HotLedger(self.loop, self.store.content, self.catalogue)
        faults = draw_redis(self.seed, self.swarm.seconds)
        self.redis = SimRedis(self.loop, ledger, faults)
        ledger.policy, ledger.alone = faults.policy, faults.alone
        suit(self.swarm, faults)
        return ledger

    def share(self) -> MemoryStore:
        share = self.store.share()
        share.log = ObservedLog(self.store.content, self.ledger)
        if self.redis is not None:
            share.wals = ObservedWals(self.store.content, self.redis)
        return share

    def open_store(self, host: int) -> FullStore | SimHotStore:
        """Open the store as a host does."""
        if self.redis is None:
            return FullStore(self.share(), self.loop, self.swarm)
        return SimHotStore(AwayStore(self.share(), self.loop, self.swarm, seed=self.seed, host=host), self.redis)

    def ms(self, seconds: float) -> float:
        """A moment of this world as a clock without fault shows it."""
        return EPOCH_MS + seconds * 1000

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        """Something that no process does."""
        self.loop.call_later(seconds, callback)

    async def die(self) -> None:
        """The process that runs this is gone."""
        PROCESS.get().die()
        await self.loop.create_future()

    def _boundary(self, name: str) -> None:
        self.ledger.reached[f"boundary {name}"] += 1
        process = PROCESS.get(None)
        if process is None or not self.swarm.boundary:
            return
        if self.swarm.random.random() < self.swarm.boundary:
            self.swarm.seen["boundary"] += 1
            process.die()
            raise ProcessDied

    # --- the play -------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Chaos for as long as somebody wants something, then healing, then up to an hour for every run to end."""
        log = logging.getLogger("weft")
        throttled_log = ThrottledLog(self.ledger)
        level, before = log.level, set_hook(self._boundary)
        log.setLevel(logging.ERROR)
        log.addHandler(throttled_log)
        try:
            self._drive(self.loop.create_task(self._play()))
        finally:
            set_hook(before)
            log.setLevel(level)
            log.removeHandler(throttled_log)

    def _drive(self, task: asyncio.Task[None]) -> None:
        while not task.done():
            if not self.loop.turn():
                if self._is_quiet():
                    self.healing.set_result(None)
                    continue
                self.loop.jump()
            if self.loop.turns > TURNS_MAX:
                self.ledger.breach(f"it goes round and round: {TURNS_MAX} turns of the loop")
                return
        task.result()

    async def _play(self) -> None:
        if self.redis is not None:
            self.redis.start()
        for host in self.hosts:
            host.boot()
        for index in range(self.swarm.runs):
            self.user(self._run(index))
        monkey = self.loop.create_task(self._monkey())
        self.loop.call_later(self.swarm.seconds, lambda: self.healing.done() or self.healing.set_result(None))
        await self.healing
        monkey.cancel()
        self._heal()
        # What a clock that was ahead has put off is put off: the hour begins when the right time has come there.
        end = self.loop.time() + HOUR + self.ahead_ms / 1000
        first = self.loop.time() + 60
        while self.loop.time() < end and self._is_unfinished():
            await asyncio.sleep(1.0 if self.loop.time() < first else 20.0)
            await self._resume_all()
        self.ledger.note("end")

    async def _resume_all(self) -> None:
        """A pause that came late, after its own resume, is for a person to end, and so is work that asks first."""
        for run in list(self.store.content.open.values()):
            if run.status == "paused":
                with contextlib.suppress(WeftError):
                    await self.handle(self.client_door, run.id).resume()
            shadow = self.ledger.shadows.get(run.new.uid)
            for number in shadow.unconfirmed if shadow is not None else ():
                with contextlib.suppress(WeftError):
                    place = shadow.machine.location(number)
                    await self.handle(self.client_door, run.id).decide(place, approved=False, by="nobody")

    def _is_unfinished(self) -> bool:
        return bool(self.store.content.open) or not all(user.done() for user in self.users)

    def _is_quiet(self) -> bool:
        """Whether chaos has nothing left to spoil: nobody wants anything for a while. Then hosts only look around."""
        if self.healing.done() or self._is_unfinished():
            self.quiet_at = self.loop.time() + QUIET
        return self.loop.time() > self.quiet_at

    def _heal(self) -> None:
        self.chaotic = False
        for host in self.hosts:
            host.clock.skew_ms = 0
        self.swarm.heal()
        if self.redis is not None:
            self.redis.heal()
        self.ledger.note("heal")
        for host in self.hosts:
            if host.process.frozen:
                self.loop.thaw(host.process)

    async def _monkey(self) -> None:
        swarm = self.swarm
        total = swarm.kills + swarm.freezes + swarm.jumps + swarm.stops
        while total:
            await asyncio.sleep(self.random.expovariate(total))
            host = self.random.choice(self.hosts)
            luck = self.random.random() * total
            if not host.process.alive or host.process.frozen:
                continue
            if luck < swarm.kills:
                self.swarm.seen["kill"] += 1
                host.process.die()
            elif luck < swarm.kills + swarm.freezes:
                self._freeze(host)
            elif luck < swarm.kills + swarm.freezes + swarm.jumps:
                self.swarm.seen["jump"] += 1
                host.clock.jump(self.swarm.jump_ms(self.random))
                self.ahead_ms = max(self.ahead_ms, host.clock.skew_ms)
            elif host.ready:
                self.swarm.seen["stop"] += 1
                host.process.context.copy().run(self.loop.create_task, host.stop())

    def _freeze(self, host: Machine) -> None:
        self.swarm.seen["freeze"] += 1
        process = host.process
        process.frozen = True
        length = self.random.choice((0.5, 2.0, 10.0)) * self.swarm.settings.lease_seconds * self.random.random()
        self.ledger.note("freeze", process.name, length)
        self.later(length, lambda: self.loop.thaw(process))

    # --- users ----------------------------------------------------------------------------------------------------

    def user(self, coro: Coroutine[Any, Any, None]) -> None:
        self.users.append(self.loop.create_task(coro))

    async def _run(self, index: int) -> None:
        """One user: starts a run and does to it what its kind needs, and what users do."""
        r = self.random
        name = r.choice(self.cast.names)
        kind = self.cast.kinds[name]
        args = kind.draw(r)
        run_id = f"{name}-{index}"
        plans = [r.random() for _ in range(6)]
        await asyncio.sleep(r.uniform(0, self.swarm.seconds / 3))
        self.specs[run_id] = (name, args)
        start = c.StartRun(
            run_id=run_id,
            workflow=name,
            version=kind.workflow.version,
            style=kind.workflow.style,
            input=msgspec.Raw(kind.workflow.given(args)),
            timeout_ms=kind.workflow.timeout_ms,
        )
        plan = kind.workflow.plan_for(bytes(start.input))
        if bytes(plan):
            start = c.StartGoal(**{field: getattr(start, field) for field in start.__struct_fields__}, plan=plan)
        burst = random.Random(f"burst-{self.seed}-{index}").random() < BURSTS
        begin = self._burst if burst else self._start
        if not await self.give("start", run_id, lambda service: begin(service, start)):
            return
        if plans[0] < 0.3:
            self.user(self._again("start", run_id, lambda service: self._start(service, start)))
        for number in range(r.randint(0, 4) if kind.messages else 0):
            self.user(self._message(run_id, r.choice(kind.messages), f"{run_id}/{number}"))
        for number in range(r.randint(1, 4) if kind.requests else 0):
            self.user(self._request(run_id, r.choice(kind.requests), f"{run_id}/{number}"))
        if kind.asks and plans[1] < 0.8:
            self.user(self._answer(run_id))
        if plans[2] < 0.15:
            self.user(self._cancel(run_id))
        if plans[3] < 0.2:
            self.user(self._pause(run_id))
        if plans[4] < 0.4:
            self.user(self._wait(run_id))
        if plans[5] < 0.3 and name == "undone":
            self.user(self._retry(run_id))
        if plans[5] < 0.7 and kind.letters:
            self.user(self._mend_goal(run_id) if kind.workflow.style == "goal" else self._mend(run_id))
        if self.cast.patches is not None and kind.workflow.style == "goal" and plans[5] < 0.8:
            self.user(self._patch(run_id, self.cast.patches.get(name)))
        if self.cast.versions and plans[5] < 0.9:
            self.user(self._move(run_id))
        if self.cast.draw_patch is not None:
            for number in range(r.randint(0, 2)):
                self.user(self._patch_graph(run_id, name, number))

    async def _start(self, service: RunService, start: c.StartRun) -> None:
        await service.create(start, StartOptions(chosen=True))

    async def _burst(self, service: RunService, start: c.StartRun) -> None:
        started = await service.create(start, StartOptions(chosen=True, delay_ms=PUT_OFF_MS))
        if started.created and service.local is not None:
            self.ledger.reached["begun before its time"] += 1
            service.local.spawn(self._take_new(service.local, started.uid))

    async def _take_new(self, local: LocalRuns, uid: RunUid) -> None:
        await asyncio.sleep(random.Random(f"calm-{uid}").uniform(0, 6))
        await local.claim_new([uid])

    async def _message(self, run_id: str, name: str, token: str) -> None:
        self.named[token] = name
        await asyncio.sleep(self.random.uniform(0, 6))
        body = {"token": token}
        await self.give("message", token, lambda runs: self.handle(runs, run_id).send(name, body, key=token))
        if self.random.random() < 0.4:
            await self._again("message", token, lambda runs: self.handle(runs, run_id).send(name, body, key=token))
        if self.random.random() < 0.1:
            other = {"token": "another"}
            await asyncio.sleep(self.random.uniform(0, 6))
            known = token in self.ledger.acks.get("message", {})
            taken = await self.give("reuse", token, lambda runs: self.handle(runs, run_id).send(name, other, key=token))
            if taken and known:
                self.ledger.breach(f"the key {token} was accepted for two commands")

    async def _request(self, run_id: str, name: str, token: str) -> None:
        """Send a request until somebody takes it, then ask for its answer until there is one, or can be none."""
        await asyncio.sleep(self.random.uniform(0, 6))
        body = {"token": token}

        async def send(service: RunService) -> None:
            await send_request(service, RunId(run_id), name, msgspec.json.encode(body), key=token)

        async def ask(service: RunService) -> None:
            try:
                async with asyncio.timeout(PATIENCE):  # or callers that left would go on asking in the host
                    answer = await self.handle(service, run_id).request(name, body, key=token)
            except TimeoutError:
                raise Unavailable("There is no answer yet.") from None
            self.answers.append((token, answer))

        if await self.give("request", token, send):
            await self.give("answered", token, ask)
            if self.random.random() < 0.4:
                await self._again("answered", token, ask)

    async def _answer(self, run_id: str) -> None:
        await asyncio.sleep(self.random.uniform(0, 7))
        approved = self.random.random() < 0.5
        by = f"user-{run_id}"
        await self.give(
            "answer", run_id, lambda runs: self.handle(runs, run_id).decide("ok", approved=approved, by=by, key=by)
        )

    async def _cancel(self, run_id: str) -> None:
        await asyncio.sleep(self.random.uniform(0, 6))
        await self.give("cancel", run_id, lambda runs: self.handle(runs, run_id).cancel("enough"))

    async def _pause(self, run_id: str) -> None:
        await asyncio.sleep(self.random.uniform(0, 5))
        await self.give("pause", run_id, lambda runs: self.handle(runs, run_id).pause())
        await asyncio.sleep(self.random.uniform(0, 8))
        await self.give("resume", run_id, lambda runs: self.handle(runs, run_id).resume(), for_sure=True)

    async def _retry(self, run_id: str) -> None:
        await asyncio.sleep(self.random.uniform(2, 15))
        await self.give("retry", run_id, lambda runs: self.handle(runs, run_id).retry())

    async def _patch(self, run_id: str, goal: str | None) -> None:
        """Patch a run, perhaps undo that, and give a fact that nobody needs."""
        await asyncio.sleep(self.random.uniform(0, 0.7))
        patch: dict[str, Any] = {"replan": True} if goal is None else {"goals": {"add": [goal]}}
        patch |= self.random.choice([{}, {"given": {"memo": "x" * 40_000}}, {"catalogue": "now"}])
        done = await self.give(
            "patch", run_id, lambda runs: self.handle(runs, run_id).patch(**patch, key=f"{run_id}/patch")
        )
        if done and self.random.random() < 0.3:
            await asyncio.sleep(self.random.uniform(0, 3))
            await self.give("undo", run_id, lambda runs: self.handle(runs, run_id).undo_patch())

    async def _move(self, run_id: str) -> None:
        """Bring a run to another version of its code, perhaps twice, and perhaps undo that."""
        await asyncio.sleep(self.random.uniform(0, 4))
        to = self.random.choice(self.cast.versions)

        async def move(service: RunService) -> None:
            plan = await self.handle(service, run_id).patch(to=to, key=f"{run_id}/move")
            if not plan.applied:
                raise Unavailable("Its host has not answered yet.")

        done = await self.give("move", run_id, move)
        if done and self.random.random() < 0.4:
            await self._again("move", run_id, move)
        if done and self.random.random() < 0.3:
            await self.give("undo", run_id, lambda runs: self.handle(runs, run_id).undo_patch())

    async def _patch_graph(self, run_id: str, workflow: str, number: int) -> None:
        """Patch a graph run, perhaps undo that, and try it again if it has failed."""
        assert self.cast.draw_patch is not None
        r, key = self.random, f"{run_id}/{number}"
        await asyncio.sleep(r.uniform(0, r.choice((0.05, 0.3, 1, 5))))
        patch = self.cast.draw_patch(r, workflow, self._live_nodes(run_id))

        async def apply(service: RunService) -> None:
            plan = await self.handle(service, run_id).patch(**patch, key=key)
            if not plan.applied:
                raise Unavailable("No host has applied it yet.")

        done = await self.give("patch", key, apply)
        if done and r.random() < 0.3:
            await self._again("patch", key, apply)
        if done and r.random() < 0.3:
            await asyncio.sleep(r.uniform(0, 3))
            await self.give("undo", run_id, lambda runs: self.handle(runs, run_id).undo_patch())
        if r.random() < 0.3:
            await self._retry(run_id)

    def _live_nodes(self, run_id: str) -> list[str]:
        state = self.ledger.shadows[self.store.content.ids[RunId(run_id)]].machine.state
        return sorted({token.node for token in state.tokens.values()}) if isinstance(state, GraphState) else []

    async def _mend(self, run_id: str) -> None:
        """Look for dead letters of this run, mend what failed, and let it be tried again, or throw the letter away."""
        keep = self.random.random() < 0.8
        for _ in range(20):
            await asyncio.sleep(self.random.uniform(1, 3))
            found: list[str] = []

            async def look(service: RunService, found: list[str] = found) -> None:
                found += [one.token async for one in all_dead_letters(service, run_id) if one.row.id == run_id]

            await self.give("letters", run_id, look)
            if not found:
                continue
            token = found[0]
            if not keep:
                command: c.RequeueLetter | c.DiscardLetter = c.DiscardLetter(token)
            else:
                self.mended.add(run_id)
                command = c.RequeueLetter(token)
            what = "requeue" if keep else "discard"
            if await self.give(what, run_id, lambda service: service.tell(RunId(run_id), command)):  # noqa: B023 - at once
                return

    async def _mend_goal(self, run_id: str) -> None:
        """When the run has failed, mend what failed and let it be tried again."""
        for _ in range(20):
            await asyncio.sleep(self.random.uniform(1, 3))
            found: list[str] = []

            async def look(service: RunService, found: list[str] = found) -> None:
                found.append((await service.row(RunId(run_id))).status)

            await self.give("status", run_id, look)
            if found != ["failed"]:
                continue
            self.mended.add(run_id)
            if await self.give("retry", run_id, lambda service: service.tell(RunId(run_id), c.RetryRun())):
                return

    async def _wait(self, run_id: str) -> None:
        async def result(service: RunService) -> None:
            try:
                told: Any = await self.handle(service, run_id).result()
            except RunFailed as failed:
                told = failed.failure.type
            except RunCancelled:
                told = "cancelled"
            self.results.append((run_id, told))

        await self.give("result", run_id, result, patience=HOUR)

    async def _again(self, kind: str, name: str, action: Callable[[RunService], Coroutine[Any, Any, Any]]) -> None:
        """The same command once more, perhaps long after.

        It must be answered as the first one was, and change nothing.
        """
        await asyncio.sleep(self.random.uniform(0, 12))
        acked = name in self.ledger.acks.get(kind, {})
        again = await self.give(f"{kind} again", name, action)
        if acked and not again and (why := self.ledger.refused.get(f"{kind} again", {}).get(name)):
            self.ledger.breach(f"{kind} {name} was acknowledged, and refused when it came again: {why}")

    def handle(self, service: RunService, run_id: str) -> Handle[Any]:
        return Handle(service, run_id, _ANY)  # type: ignore[arg-type]

    async def give(
        self,
        kind: str,
        name: str,
        action: Callable[[RunService], Coroutine[Any, Any, Any]],
        *,
        patience: float = PATIENCE,
        for_sure: bool = False,
    ) -> bool:
        """Give a command until somebody answers; False: it was refused, or the user gave up."""
        while True:
            process, service = self._service()
            if service is None:
                await asyncio.sleep(0.5)
                continue
            # A program without an engine asks for a result again and again: that is not worth simulating for long.
            outcome = await self._try(
                process, action(service), patience if service.local is not None else min(patience, 5.0)
            )
            if outcome is None:
                self.ledger.ack(kind, name)
                return True
            if isinstance(outcome, WeftError) and not isinstance(outcome, StoreError):
                self.ledger.refuse(kind, name, type(outcome).__name__)
                return False
            self.ledger.unknown.add(f"{kind} {name}")
            self.ledger.reached[f"unknown {kind}"] += 1
            if self.chaotic and not for_sure and self.random.random() < 0.15:
                return False
            await asyncio.sleep(self.random.uniform(0, 2))

    def _service(self) -> tuple[Process, RunService | None]:
        ready = [host for host in self.hosts if host.ready and host.process.alive]
        if self.random.random() < 0.3:
            return self.client, self.client_door
        if not ready:
            return self.client, None
        host = self.random.choice(ready)
        return host.process, host.service

    async def _try(self, process: Process, action: Coroutine[Any, Any, Any], patience: float) -> BaseException | None:
        """One try: None if it was answered, the error if not; StoreError also if the process died or did not answer."""
        task = process.context.copy().run(self.loop.create_task, action)
        gone: asyncio.Future[None] = self.loop.create_future()
        process.watchers.append(lambda: None if gone.done() else gone.set_result(None))
        await asyncio.wait([task, gone], timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            if process is self.client:
                task.cancel()
            task.add_done_callback(self._ended_late)
            return StoreError("nobody answered")
        error = task.exception()
        if isinstance(error, ProcessDied):
            return StoreError("nobody answered")
        if error is not None and not isinstance(error, WeftError):
            self.loop.errors.append(error)
        return error

    def _ended_late(self, task: asyncio.Task[Any]) -> None:
        """Nobody waits for this try any more; a refusal is not an internal error."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, WeftError | ProcessDied):
            self.loop.errors.append(error)

    def close(self) -> None:
        for host in self.hosts_built:
            for actor in list(host.runs.actors.values()):
                actor.close()
        self.loop.close()
