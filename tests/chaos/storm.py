"""Hosts as real processes over a Postgres of their own, while everything goes wrong that can.

A host is killed every two seconds, one is frozen past its lease and woken, the server is stopped at once and started
again. ``python -m tests.chaos.storm 1000`` runs the whole storm and prints what was found.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec

import weft
from tests.chaos.business import Ledger, build
from tests.chaos.verdict import Findings, Span, judge
from tests.servers import Cluster

ROOT = Path(__file__).parents[2]
STYLES = ("order", "packing", "shipping")
HOSTS = 3
STARTERS = 8
# Also of hosts that died before they could say their names.
_OWNERS = (
    "SELECT array_agg((about->>'pid')::int) FROM hosts WHERE EXISTS (SELECT FROM runs WHERE runs.owner = hosts.host)"
)
_BUSIEST = (
    "SELECT array_agg((about->>'pid')::int ORDER BY (SELECT count(*) FROM runs WHERE runs.owner = hosts.host) DESC) "
    "FROM hosts"
)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How large a storm is. Seconds, unless the name says otherwise."""

    runs: int
    seed: int
    spread: float
    """Over this long the runs are started."""
    kill_every: float = 2.0
    kills_max: int | None = None
    """A task fails whose hosts were lost too often, which a long storm on a slow machine would come to."""
    freeze_at: float
    freeze_for: float = 7.0
    outages: tuple[float, ...]
    outage_for: float = 1.5
    patience: float = 120.0
    """After the last start, everything must have ended within this."""


def whole(runs: int, seed: int) -> Plan:
    """The storm of `make chaos`."""
    return Plan(runs=runs, seed=seed, spread=60.0, freeze_at=15.0, outages=(25.0, 45.0))


def short(runs: int, seed: int) -> Plan:
    """A squall, for every change."""
    return Plan(
        runs=runs, seed=seed, spread=9.0, kills_max=4, freeze_at=1.0, freeze_for=6.0, outages=(5.0,), outage_for=0.5
    )


class Host:
    """A process of `tests.chaos.business`."""

    def __init__(self, url: str, folder: Path, number: int) -> None:
        self._complaints = (folder / f"host-{number}.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.business", url, str(folder)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
        )
        self.pid = self._process.pid

    async def announced(self) -> None:
        assert self._process.stdout is not None
        await asyncio.to_thread(self._process.stdout.readline)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        self._process.wait(120)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._complaints.close()


class Storm:
    """See the module."""

    def __init__(self, plan: Plan, cluster: Cluster, folder: Path) -> None:
        self.plan = plan
        self._cluster = cluster
        self._folder = folder
        self._draw = random.Random(plan.seed)
        self._hosts: list[Host] = []
        self._numbers = iter(range(10_000))
        self._up = asyncio.Event()
        self._up.set()
        self._calm = asyncio.Event()
        self._began = 0.0
        self._killed: dict[int, float] = {}
        """By process: when. As soon as nothing is in its hands any more, it is forgotten."""
        self._frozen: Host | None = None
        self.findings = Findings()

    @property
    def url(self) -> str:
        return self._cluster.url()

    @property
    def _now(self) -> float:
        """Seconds since the storm began."""
        return time.monotonic() - self._began

    async def rage(self) -> Findings:
        """Run it to its end and judge."""
        self._hosts = [self._new_host() for _ in range(HOSTS)]
        await asyncio.gather(*(host.announced() for host in self._hosts))
        self._began = time.monotonic()
        troubles = [
            asyncio.create_task(trouble)
            for trouble in (self._kill(), self._freeze(), self._stop_server(), self._watch_the_dead())
        ]
        try:
            await self._business()
            self._calm.set()
            await asyncio.gather(*troubles)
            await self._until_all_over()
        finally:
            for trouble in troubles:
                trouble.cancel()
            for host in self._hosts:
                host.end(signal.SIGKILL)
        self.findings.seconds = self._now
        await judge(self.findings, self.url, self._folder, self.plan.runs)
        return self.findings

    # --- what clients do ------------------------------------------------------------------------------------------

    async def _business(self) -> None:
        numbers = iter(range(self.plan.runs))
        pause = self.plan.spread * STARTERS / self.plan.runs

        # It hosts nothing: it only knows the workflows, as a web server of the same program would.
        app = build(self.url, Ledger(self._folder))

        async def starter() -> None:
            for n in numbers:
                style = STYLES[n % len(STYLES)]
                began = time.monotonic()
                await self._insist(lambda n=n, style=style: app.start(style, {"n": n}, id=f"{style}-{n}"))
                if style == "order":
                    await self._insist(lambda n=n: app.get(f"order-{n}").send("go", n, key=f"go-{n}"))
                await asyncio.sleep(max(0.0, pause - (time.monotonic() - began)))

        async with weft.Client(self.url) as client:
            app.bind(client.service)
            await asyncio.gather(*(starter() for _ in range(STARTERS)))

    async def _insist(self, ask: Callable[[], Awaitable[Any]]) -> None:
        """As a client with idempotency keys does: the same thing again, until it is acknowledged."""
        while True:
            try:
                await ask()
            except weft.StoreError:
                await asyncio.sleep(0.1)
            else:
                return

    async def _until_all_over(self) -> None:
        deadline = time.monotonic() + self.plan.patience
        while time.monotonic() < deadline:
            left = await self._ask("SELECT count(*) FROM runs WHERE ended_at IS NULL")
            if left == 0:
                return
            await asyncio.sleep(0.2)

    # --- what goes wrong ------------------------------------------------------------------------------------------

    def _new_host(self) -> Host:
        return Host(self.url, self._folder, next(self._numbers))

    async def _pause(self, seconds: float) -> bool:
        """Wait; False: the storm is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._calm.wait()
        return not self._calm.is_set()

    async def _kill(self) -> None:
        while self.findings.kills != self.plan.kills_max and await self._pause(self.plan.kill_every):
            victims = [host for host in self._hosts if host is not self._frozen]
            victim = self._draw.choice(victims)
            victim.end(signal.SIGKILL)
            self._killed[victim.pid] = self._now
            self.findings.kills += 1
            self._hosts[self._hosts.index(victim)] = self._new_host()

    async def _freeze(self) -> None:
        if not await self._pause(self.plan.freeze_at):
            return
        busiest = await self._ask(_BUSIEST)
        by_pid = {host.pid: host for host in self._hosts}
        self._frozen = next(by_pid[pid] for pid in [*(busiest or ()), *by_pid] if pid in by_pid)
        self._frozen.signal(signal.SIGSTOP)
        began = self._now
        await asyncio.sleep(self.plan.freeze_for)
        self._frozen.signal(signal.SIGCONT)
        self.findings.frozen.append(Span(began, self._now))
        await asyncio.sleep(1.0)
        self._frozen = None

    async def _stop_server(self) -> None:
        for at in self.plan.outages:
            if not await self._pause(at - self._now):
                return
            self._up.clear()
            stopped = self._now
            await asyncio.to_thread(self._cluster.stop, signal.SIGQUIT)
            await asyncio.sleep(self.plan.outage_for)
            await asyncio.to_thread(self._cluster.start)
            self._up.set()
            self.findings.outages.append(Span(stopped, self._now))

    async def _watch_the_dead(self) -> None:
        """How long runs stay in the hands of a host that was killed."""
        seen: set[int] = set()
        while not self._calm.is_set() or self._killed:
            await asyncio.sleep(0.1)
            asked = self._now
            owners = set(await self._ask(_OWNERS) or ())
            for pid, since in list(self._killed.items()):
                if pid in owners:
                    seen.add(pid)
                elif since < asked:
                    del self._killed[pid]
                    if pid in seen:
                        self.findings.adopted.append(Span(since, self._now))

    async def _ask(self, text: str) -> Any:
        while True:
            await self._up.wait()
            try:
                connection = await asyncpg.connect(self.url, server_settings={"search_path": "weft"}, timeout=120)
                try:
                    return await connection.fetchval(text)
                finally:
                    connection.terminate()
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(0.1)


@contextlib.contextmanager
def at_sea() -> Iterator[tuple[Cluster, Path]]:
    """A server and a folder for one storm."""
    folder = Path(tempfile.mkdtemp(prefix="weft-storm-"))
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster, folder
    finally:
        cluster.remove()
        shutil.rmtree(folder, ignore_errors=True)


def weather(plan: Plan) -> Findings:
    """One storm."""
    with at_sea() as (cluster, folder):
        return asyncio.run(Storm(plan, cluster, folder).rage())


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    print(f"{runs} runs, seed {seed}", flush=True)
    findings = weather(whole(runs, seed))
    print(json.dumps(findings.summary(), indent=1))
    sys.exit(0 if findings.is_clean() else 1)


if __name__ == "__main__":
    main()
