"""The hot path on real servers, with everything that they can do to it, and a ledger outside.

``python -m tests.hot.real_servers 1000`` plays every scenario with a thousand runs and prints what was found;
``python -m tests.hot.real_servers 1000 failover`` plays one. The promises: docs/redis.md#what-may-be-lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import weft
from tests.hot.proof_verdict import Verdict, judge, read_ledger
from tests.redis_server import RedisServer
from tests.servers import Cluster

ROOT = Path(__file__).parents[2]
HOSTS = 2
STARTERS = 8
PATIENCE_SECONDS = 300.0
"""After the last fault, everything must have ended within this. A server that forgot its WALs costs a minute."""
STOOD_STILL_SECONDS = 1.5
"""Who could not speak for longer than this may have been taken for dead: a lease is five seconds."""
FROZEN_SECONDS = 12.0
"""Who is frozen for so long is taken for dead."""
TICK_SECONDS = 0.1
SPREAD_SECONDS = 8.0
"""Over this long the runs are started, so that every fault meets work."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong, and what may be lost by it."""

    play: Callable[[Stage], Coroutine[Any, Any, None]]
    hot: str = "2s"
    """The policy. With a duration, there is always something that is not drained."""
    loses: bool = False
    """Whether plain hops may be lost: Redis loses data and hosts die."""
    repeats: bool = False
    """Whether steps that were in hand may run again: hosts die."""


class Stage:
    """The servers and hosts of one scenario, and the client who starts runs and keeps a list of what was answered."""

    def __init__(self, cluster: Cluster, redis: RedisServer, folder: Path, *, runs: int, hot: str, seed: int) -> None:
        self.cluster = cluster
        self.redis = redis
        self.draw = random.Random(seed)
        self.folder = folder
        self.ledger = folder / "ledger.txt"
        self.ledger.touch()
        self.runs = runs
        self.hot = hot
        self.started: dict[str, int] = {}
        self.told: list[str] = []
        self.safe_until = 0.0
        """Hops that were acknowledged before this time must not be lost, whatever the scenario."""
        self.faulted_at = 0.0
        """When the last fault came."""
        self._may_start = 0
        """So many runs may be started now: however long faults take, the last one meets work."""
        self.stood_still = 0.0
        """For how many seconds at most hosts could not have told anybody that they live."""
        self._hosts: list[subprocess.Popen[bytes]] = []
        self._made = 0

    # --- hosts --------------------------------------------------------------------------------------------------------

    async def start_hosts(self) -> None:
        """Start hosts, and wait until they work."""
        env = {**os.environ, "WEFT_REDIS": self.redis.url, "WEFT_HOT": self.hot}
        command = [sys.executable, "-m", "tests.hot.proof_host", self.cluster.url(), str(self.ledger)]
        for _ in range(HOSTS - len(self._hosts)):
            self._made += 1
            with (self.folder / f"host-{self._made}.log").open("ab") as log:
                self._hosts.append(subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=log))
        for host in self._hosts:
            assert host.stdout is not None
            await asyncio.to_thread(host.stdout.readline)

    def kill_hosts(self, count: int = HOSTS) -> None:
        """Kill hosts with SIGKILL, all of them at the same moment."""
        victims, self._hosts = self._hosts[:count], self._hosts[count:]
        for host in victims:
            host.send_signal(signal.SIGKILL)
        for host in victims:
            host.wait(120)
            assert host.stdout is not None
            host.stdout.close()

    @contextlib.asynccontextmanager
    async def frozen_host(self) -> AsyncIterator[None]:
        """Stop one host in its tracks. When the others take it for dead after the block, it goes on."""
        host = self._hosts[0]
        host.send_signal(signal.SIGSTOP)
        try:
            yield
            await asyncio.sleep(FROZEN_SECONDS)
        finally:
            host.send_signal(signal.SIGCONT)

    async def stop_postgres(self, seconds: float = 0.0) -> None:
        """Stop Postgres at once, as with ``-m immediate``, for so long."""
        began = time.monotonic()
        await asyncio.to_thread(self.cluster.stop, signal.SIGQUIT)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self.cluster.start)
        self.stood_still = max(self.stood_still, time.monotonic() - began)

    async def watch_the_machine(self) -> None:
        """Note for how long this process, and so perhaps others, got no time from a machine that is too busy."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(TICK_SECONDS)
            self.stood_still = max(self.stood_still, time.monotonic() - began - TICK_SECONDS)

    # --- the client ---------------------------------------------------------------------------------------------------

    async def do_business(self) -> None:
        """Start all runs and tell each its number, again and again until it is answered."""
        numbers = iter(range(self.runs))
        async with weft.Client(self.cluster.url()) as client:
            pause = SPREAD_SECONDS * STARTERS / self.runs

            async def starter(which: int) -> None:
                await asyncio.sleep(pause * which / STARTERS)  # one after the other, so that there is always work
                for number in numbers:
                    while number >= self._may_start:
                        await asyncio.sleep(0.01)
                    run = f"chain-{number}"
                    handle = await _insist(partial(client.start, "chain", {"run": run}, id=run))
                    self.started[run] = number
                    await _insist(partial(handle.send, "go", number, key=f"go-{run}"))
                    self.told.append(run)
                    await asyncio.sleep(pause)

            await asyncio.gather(*(starter(which) for which in range(STARTERS)))

    async def until_all_over(self) -> None:
        """Wait until every run is over; what is not then, is stuck."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        async with weft.Client(self.cluster.url()) as client:
            while time.monotonic() < deadline:
                counts = await _insist(client.service.store.directory.counts)
                if sum(counts.get(status, 0) for status in ("pending", "running")) == 0:
                    return
                await asyncio.sleep(0.2)

    async def until_busy(self, share: float = 0.2, *, is_last: bool = True) -> None:
        """Wait until this share of the runs has been started, so that the fault meets work.

        A sixth of all is kept back for the last fault.
        """
        self._may_start = self.runs - self.runs // 6
        while len(self.started) < share * self.runs:
            await asyncio.sleep(0.01)
        if is_last:
            self._may_start = self.runs
        self.faulted_at = time.time()

    def close(self) -> None:
        self.kill_hosts()


async def _insist(ask: Callable[[], Awaitable[Any]]) -> Any:
    """As a client with idempotency keys does: the same thing again, until it is answered."""
    while True:
        try:
            return await ask()
        except weft.StoreError:
            await asyncio.sleep(0.1)


# --- what goes wrong --------------------------------------------------------------------------------------------------


async def kill_redis(stage: Stage) -> None:
    """Redis is killed and comes back with all that it had acknowledged."""
    for share in (0.2, 0.5, 0.8):
        await stage.until_busy(share, is_last=share == 0.8)
        await asyncio.to_thread(stage.redis.restart)


async def empty_redis(stage: Stage) -> None:
    await stage.until_busy(0.5)
    stage.redis.flush()


async def fail_over(stage: Stage) -> None:
    """A replica that was stopped a second before becomes the primary, under the address of the old one."""
    replica = await stopped_replica(stage)
    stage.redis.kill()
    await asyncio.to_thread(take_place, replica, stage)


async def stop_postgres(stage: Stage) -> None:
    """Postgres is stopped while hosts drain."""
    for share in (0.3, 0.6):
        await stage.until_busy(share, is_last=share == 0.6)
        await stage.stop_postgres(1.0)


async def kill_all_hosts(stage: Stage) -> None:
    await stage.until_busy(0.5)
    stage.kill_hosts()
    await stage.start_hosts()


async def freeze_host(stage: Stage) -> None:
    """A host is frozen and taken for dead. It goes on when its runs are others'."""
    await stage.until_busy(0.5)
    async with stage.frozen_host():
        pass


async def freeze_host_and_empty_redis(stage: Stage) -> None:
    """The others wait a minute for what Redis does not have any more, and the host goes on before that."""
    await stage.until_busy(0.5)
    async with stage.frozen_host():
        stage.redis.flush()


async def kill_redis_and_hosts(stage: Stage) -> None:
    """A Redis process that is killed has lost nothing, so nothing is lost though the hosts die too."""
    await stage.until_busy(0.5)
    stage.redis.kill()
    stage.kill_hosts()
    await asyncio.to_thread(stage.redis.start)
    await stage.start_hosts()


async def kill_redis_and_stop_postgres(stage: Stage) -> None:
    await stage.until_busy(0.5)
    stage.redis.kill()
    await stage.stop_postgres()
    await asyncio.to_thread(stage.redis.start)


async def empty_redis_and_stop_postgres(stage: Stage) -> None:
    await stage.until_busy(0.5)
    stage.redis.flush()
    await stage.stop_postgres(1.0)


async def kill_hosts_and_stop_postgres(stage: Stage) -> None:
    await stage.until_busy(0.5)
    stage.kill_hosts()
    await stage.stop_postgres()
    await stage.start_hosts()


async def empty_redis_and_kill_hosts(stage: Stage) -> None:
    """Everything that was not drained is lost: two seconds, and the time that a drain takes."""
    await stage.until_busy(0.5)
    stage.safe_until = time.time() - 12.0
    stage.redis.flush()
    stage.kill_hosts()
    await stage.start_hosts()


async def cut_aof_and_kill_hosts(stage: Stage) -> None:
    """The machine of Redis loses power: its AOF ends at any byte of its last second."""
    await stage.until_busy(0.4)
    (before,) = stage.redis.aof_files()
    stage.safe_until = time.time()
    # It may answer before it writes, while the disk is busy.
    await asyncio.to_thread(stage.redis.wait_until_written)
    size = before.stat().st_size
    await asyncio.sleep(1.0)
    stage.kill_hosts()
    stage.redis.kill()
    end = before.stat().st_size
    os.truncate(before, stage.draw.randint(size, end))
    await asyncio.to_thread(stage.redis.start)
    await stage.start_hosts()


async def fail_over_and_kill_hosts(stage: Stage) -> None:
    replica = await stopped_replica(stage)
    stage.kill_hosts()
    stage.redis.kill()
    await asyncio.to_thread(take_place, replica, stage)
    await stage.start_hosts()


async def stopped_replica(stage: Stage) -> RedisServer:
    """Return a replica that has followed the server of a stage, and was stopped one second ago."""
    replica = RedisServer(aof="everysec", replica_of=stage.redis)
    await asyncio.to_thread(replica.start)
    await asyncio.to_thread(replica.wait_for_replica)
    # A replica that has just joined writes its first AOF in the background, and would lack everything.
    for text in ("aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"):
        await asyncio.to_thread(replica.wait_until, text, "persistence")
    await stage.until_busy(0.4)
    # What it has written, it keeps: it is killed, and the system goes on.
    stage.safe_until = time.time()
    await asyncio.to_thread(replica.wait_until_level_with, stage.redis)
    await asyncio.to_thread(replica.kill)
    await asyncio.sleep(1.0)
    return replica


def take_place(replica: RedisServer, stage: Stage) -> None:
    """Start the replica as a primary, under the address of the old one."""
    replica.become_primary_at(stage.redis.port)
    stage.redis.remove()
    replica.start()
    stage.redis = replica


SCENARIOS: dict[str, Scenario] = {
    "kill-redis": Scenario(play=kill_redis),
    "kill-redis-event": Scenario(play=kill_redis, hot="event"),
    "empty-redis": Scenario(play=empty_redis),
    "failover": Scenario(play=fail_over),
    "stop-postgres": Scenario(play=stop_postgres),
    "stop-postgres-event": Scenario(play=stop_postgres, hot="event"),
    "kill-hosts": Scenario(play=kill_all_hosts, repeats=True),
    "freeze-host": Scenario(play=freeze_host, repeats=True),
    "kill-redis-and-hosts": Scenario(play=kill_redis_and_hosts, repeats=True),
    "kill-redis-stop-postgres": Scenario(play=kill_redis_and_stop_postgres),
    "empty-redis-stop-postgres": Scenario(play=empty_redis_and_stop_postgres),
    "kill-hosts-stop-postgres": Scenario(play=kill_hosts_and_stop_postgres, repeats=True),
    "cut-aof-kill-hosts": Scenario(play=cut_aof_and_kill_hosts, repeats=True, loses=True),
    "failover-kill-hosts": Scenario(play=fail_over_and_kill_hosts, repeats=True, loses=True),
    "freeze-host-empty-redis": Scenario(play=freeze_host_and_empty_redis, repeats=True),
    "empty-redis-kill-hosts": Scenario(play=empty_redis_and_kill_hosts, repeats=True, loses=True),
}


# --- playing ----------------------------------------------------------------------------------------------------------


def play(name: str, *, runs: int, seed: int) -> Verdict:
    """Play one scenario on servers of its own, and judge it. What it may not do is found wrong."""
    scenario = SCENARIOS[name]
    with _servers() as (cluster, redis, folder):
        stage = Stage(cluster, redis, folder, runs=runs, hot=scenario.hot, seed=seed)
        try:
            verdict = asyncio.run(_play(stage, scenario))
        finally:
            stage.close()
            stage.redis.remove()
        early = [hop for hop in verdict.hops if hop.acknowledged_at < stage.safe_until]
        if verdict.hops and not scenario.loses:
            verdict.wrong.append(f"hops were lost, and none may be: {verdict.hops[:3]}")
        if early:
            verdict.wrong.append(f"hops were lost that were safe: {early[:3]} before {stage.safe_until:.3f}")
        # Who was taken for dead on a machine that stood still had its tasks taken away, and the log says so.
        excused = verdict.tasks_lost if stage.stood_still > STOOD_STILL_SECONDS else 0
        if verdict.repeated > excused and not scenario.repeats:
            verdict.wrong.append(f"{verdict.repeated} steps ran again though their host lived")
        if read_ledger(stage.ledger)[-1].at < stage.faulted_at:
            verdict.wrong.append("everything was over before the last fault came, so nothing is shown")
        if verdict.losses and not scenario.loses:
            verdict.wrong.append(f"{verdict.losses} losses are recorded, and there were none")
        verdict.wrong += _errors(folder)
        return verdict


async def _play(stage: Stage, scenario: Scenario) -> Verdict:
    async with weft.Client(stage.cluster.url()):
        pass  # makes the tables
    await stage.start_hosts()
    watch = asyncio.create_task(stage.watch_the_machine())
    async with asyncio.TaskGroup() as both:
        both.create_task(stage.do_business())
        await scenario.play(stage)
    await stage.until_all_over()
    watch.cancel()
    return await judge(stage.cluster.url(), stage.ledger, stage.started, stage.told)


def _errors(folder: Path) -> list[str]:
    """Return the last lines of tracebacks that hosts left."""
    found = []
    for file in sorted(folder.glob("host-*.log")):
        _, *traces = file.read_text(errors="replace").split("Traceback (most recent call last):\n")
        for trace in traces:
            ends = (line for line in trace.splitlines() if line and not line.startswith(" "))
            found.append(f"{file.name}: {next(ends, 'cut off')}")
    return found


@contextlib.contextmanager
def _servers() -> Iterator[tuple[Cluster, RedisServer, Path]]:
    folder = Path(tempfile.mkdtemp(prefix="weft-hot-proof-"))
    cluster, redis = Cluster(), RedisServer(aof="everysec")
    try:
        cluster.start()
        redis.start()
        yield cluster, redis, folder
    finally:
        cluster.remove()
        redis.remove()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    names = sys.argv[2:] or list(SCENARIOS)
    seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    print(f"{runs} runs each, seed {seed}", flush=True)
    sound = True
    for name in names:
        began = time.monotonic()
        verdict = play(name, runs=runs, seed=seed)
        sound = sound and verdict.is_sound()
        print(f"{name} ({time.monotonic() - began:.0f} s): {verdict.summary()}", flush=True)
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
