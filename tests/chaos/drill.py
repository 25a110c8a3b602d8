"""The disaster drill: a host works, it is killed and its disk is lost, and the service comes back from a backup.

``python -m tests.chaos.drill [STARTS]`` plays it for SQLite (``weft backup``), for Postgres from ``pg_dump``, and for
Postgres from a base backup with the write-ahead log beside it. Of 3,000 runs, a backup is begun after every STARTS, 100
by default. It prints what was lost and how long it took, beside what is asked for. Clients note what was acknowledged,
and steps what they did, on a disk of their own.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Protocol

import msgspec

import weft
from tests.chaos.storm import ROOT, Host
from tests.servers import Cluster, program
from weft.errors import StoreError
from weft.ports.store import OPEN_STATUSES
from weft.runtime.service import RunService

RPO_SECONDS, RTO_SECONDS = 10.0, 300.0
"""What is asked for: at most ten seconds of work lost, and five minutes until the service is back."""
WORKFLOW = "label"
AT_ONCE = 16
LOOK_SECONDS = 0.05


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    """How large a drill is."""

    rounds: int
    """A backup is begun with each round, and complete at its end; in the last round, disaster strikes first."""
    starts: int
    """How many runs are started in each round."""
    pause: float = 0.0
    """Seconds between two starts of a client."""


class Outcome(msgspec.Struct, kw_only=True):
    """What a drill has shown. Seconds."""

    way: str
    acknowledged: int = 0
    backups: int = 0
    lost: list[str] = []
    """Starts that were acknowledged, and were not in the restored store."""
    lost_early: list[str] = []
    """Those of them that had been acknowledged before the last complete backup began. There must be none."""
    unfinished: list[str] = []
    """Acknowledged runs that are not completed at the end, after the lost ones were started again. None, too."""
    repeated: int = 0
    """Steps that were performed more than once, with the same key."""
    rpo: float = 0.0
    """How long before the disaster the first start was acknowledged that was lost; 0 if none was."""
    rto: float = 0.0
    """From the disaster until a new run had completed."""

    def line(self) -> str:
        return (
            f"{self.way:<28} {self.rpo:>7.2f} s {self.rto:>7.2f} s {self.acknowledged:>7,} {len(self.lost):>6,} "
            f"{self.repeated:>9,} {len(self.unfinished):>11,}"
        )


class Site(Protocol):
    """A store, how it is backed up, and how it is lost and restored."""

    way: str

    def url(self) -> str: ...

    def back_up(self, number: int) -> Path:
        """Make a complete backup on another disk."""
        ...

    def lose(self) -> None: ...

    def restore(self, backup: Path) -> None: ...


class SqliteSite:
    """A SQLite file, copied with ``weft backup``."""

    way = "SQLite, weft backup"

    def __init__(self, folder: Path) -> None:
        self._disk, self._safe = folder / "disk", folder / "safe"
        self._disk.mkdir()
        self._safe.mkdir()

    def url(self) -> str:
        return f"sqlite:///{self._disk}/weft.db"

    def back_up(self, number: int) -> Path:
        file = self._safe / f"{number}.db"
        _weft("backup", str(file), "--url", self.url())
        return file

    def lose(self) -> None:
        shutil.rmtree(self._disk)

    def restore(self, backup: Path) -> None:
        self._disk.mkdir()
        _weft("restore", str(backup), "--url", self.url())


class DumpedSite:
    """A Postgres, dumped with ``pg_dump``."""

    way = "Postgres, pg_dump"

    def __init__(self, folder: Path) -> None:
        self._safe = folder
        self._cluster = Cluster()
        self._cluster.start()

    def url(self) -> str:
        return self._cluster.url()

    def back_up(self, number: int) -> Path:
        file = self._safe / f"{number}.dump"
        _postgres("pg_dump", "--format=custom", f"--file={file}", self.url())
        return file

    def lose(self) -> None:
        self._cluster.lose_disk()
        self._cluster.remove()

    def restore(self, backup: Path) -> None:
        self._cluster = Cluster()
        self._cluster.start()
        _postgres("pg_restore", "--exit-on-error", "--no-owner", f"--dbname={self.url()}", str(backup))

    def close(self) -> None:
        self._cluster.remove()


class ArchivedSite(DumpedSite):
    """A Postgres with one base backup, and its write-ahead log received on another disk while it is written."""

    way = "Postgres, base backup + WAL"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._base, self._log = folder / "base", folder / "wal"
        self._log.mkdir()
        # The slot keeps what was not received yet: without it, the first backup can remove it.
        receive = [program("pg_receivewal"), "--slot=drill", "-d", self.url()]
        subprocess.run([*receive, "--create-slot"], check=True, capture_output=True)
        self._receiver = subprocess.Popen(
            [*receive, "--synchronous", "--status-interval=1", "-D", self._log],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def back_up(self, number: int) -> Path:
        """Make the base backup, once; the log has all that comes later. It is complete once the log was received."""
        if not self._base.exists():
            _postgres("pg_basebackup", "-D", str(self._base), "-d", self.url(), "--checkpoint=fast", "--no-sync")
        written = self._ask("SELECT pg_current_wal_lsn()")
        while self._ask(f"SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= '{written}'") == "0":
            assert self._receiver.poll() is None, "nothing receives the log"
        return self._base

    def _ask(self, question: str) -> str:
        return _postgres("psql", "-d", self.url(), "--no-align", "--tuples-only", "--command", question).strip()

    def lose(self) -> None:
        super().lose()
        # Its server is gone, so it ends by itself or waits for another one.
        self._receiver.terminate()
        self._receiver.wait()

    def restore(self, backup: Path) -> None:
        self._cluster = Cluster()
        # Beside the data of the new server, where the user that it runs as can read it.
        log = self._cluster.folder / "wal"
        shutil.copytree(self._log, log)
        self._cluster.use(backup, f"restore_command = 'cp {log}/%f %p || cp {log}/%f.partial %p'\n")
        self._cluster.start()

    def close(self) -> None:
        self._receiver.kill()
        self._receiver.wait()
        super().close()


async def play(site: Site, plan: Drill, folder: Path) -> Outcome:
    """Play the drill at one site. ``folder`` is where steps write down what they did."""
    outcome = Outcome(way=site.way)
    host = Host(site.url(), folder, 1)
    await host.announced()
    load = _Load(site, plan)
    await load.run()
    outcome.acknowledged, outcome.backups = len(load.acknowledged), load.backups
    await asyncio.to_thread(host.end, 9)
    struck_at = time.monotonic()
    newest = load.strike()
    await asyncio.to_thread(site.lose)
    await asyncio.to_thread(site.restore, newest)
    host = Host(site.url(), folder, 2)
    try:
        await host.announced()
        async with weft.Client(site.url()) as client:
            await (await client.start(WORKFLOW, {"n": 0}, id="after")).result(timeout="120s")
            outcome.rto = time.monotonic() - struck_at
            outcome.lost = [run for run in load.acknowledged if not await _exists(client, run)]
            outcome.lost_early = [run for run in outcome.lost if load.acknowledged[run] < load.backed_up_at]
            times = [load.acknowledged[run] for run in outcome.lost]
            outcome.rpo = struck_at - min(times) if times else 0.0
            # Clients repeat what they are not sure of: the same id is the same run.
            await asyncio.gather(*(client.start(WORKFLOW, {"n": 1}, id=run) for run in outcome.lost))
            await _until_over(client)
            outcome.unfinished = [run for run in load.acknowledged if await client.get(run).status() != "completed"]
    finally:
        await asyncio.to_thread(host.end, 9)
        await load.close()
    keys = collections.Counter(_keys(folder))
    outcome.repeated = sum(count - 1 for count in keys.values())
    return outcome


class _Load:
    """Clients that start runs one after the other, while backups are made."""

    def __init__(self, site: Site, plan: Drill) -> None:
        self._site = site
        self._plan = plan
        self.acknowledged: dict[str, float] = {}
        """When each start was acknowledged, by the clock of this process."""
        self.backups = 0
        self.backed_up_at = 0.0
        """When the last complete backup was begun."""
        self._backup: asyncio.Task[None] | None = None
        self._newest: Path | None = None
        self._struck = False

    async def run(self) -> None:
        async with weft.Client(self._site.url()) as client:
            await self._make_backup()
            for number in range(self._plan.rounds):
                if self._backup is not None:
                    await self._backup
                self._backup = asyncio.create_task(self._make_backup())
                runs = iter([f"run-{number}-{run}" for run in range(self._plan.starts)])
                await asyncio.gather(*(self._start(client, runs) for _ in range(AT_ONCE)))

    def strike(self) -> Path:
        """Return the newest backup that was complete when disaster struck. One that was being made does not count."""
        assert self._newest is not None
        self._struck = True
        return self._newest

    async def close(self) -> None:
        if self._backup is not None:
            with contextlib.suppress(subprocess.CalledProcessError):
                await self._backup

    async def _start(self, client: weft.Client, runs: Iterator[str]) -> None:
        for run in runs:
            await client.start(WORKFLOW, {"n": 1}, id=run)
            self.acknowledged[run] = time.monotonic()
            await asyncio.sleep(self._plan.pause)

    async def _make_backup(self) -> None:
        begun_at = time.monotonic()
        made = await asyncio.to_thread(self._site.back_up, self.backups)
        if not self._struck:
            self._newest = made
            self.backups += 1
            self.backed_up_at = begun_at


async def _exists(client: weft.Client, run: str) -> bool:
    return await _service(client).store.directory.find(run) is not None  # type: ignore[arg-type]


async def _until_over(client: weft.Client) -> None:
    async with asyncio.timeout(120):
        while True:
            with contextlib.suppress(StoreError):
                counts = await _service(client).store.directory.counts()
                if not sum(counts.get(status, 0) for status in OPEN_STATUSES):
                    return
            await asyncio.sleep(LOOK_SECONDS)


def _service(client: weft.Client) -> RunService:
    return client.service


def _keys(folder: Path) -> Iterator[str]:
    for file in folder.glob("ledger-*.txt"):
        for line in file.read_text().splitlines():
            yield line.split(" ", 1)[1]


def _weft(*words: str) -> None:
    subprocess.run([Path(sys.executable).with_name("weft"), *words], cwd=ROOT, check=True, capture_output=True)


def _postgres(name: str, *words: str) -> str:
    return subprocess.run([program(name), *words], check=True, capture_output=True, text=True).stdout


@contextlib.asynccontextmanager
async def site_in(folder: Path, make: Callable[[Path], Site]) -> AsyncIterator[Site]:
    """A site whose files are in this folder."""
    folder.mkdir()
    site = await asyncio.to_thread(make, folder)
    try:
        yield site
    finally:
        close = getattr(site, "close", None)
        if close is not None:
            await asyncio.to_thread(close)


SITES: tuple[Callable[[Path], Site], ...] = (SqliteSite, DumpedSite, ArchivedSite)


async def _main(starts: int) -> None:
    plan = Drill(rounds=max(3, 3_000 // starts), starts=starts, pause=0.3)
    print(f"{'':28} {'RPO':>9} {'RTO':>9} {'started':>7} {'lost':>6} {'repeated':>9} {'unfinished':>11}")
    print(f"{'asked for':<28} {RPO_SECONDS:>7.2f} s {RTO_SECONDS:>7.2f} s", flush=True)
    for number, make in enumerate(SITES):
        with tempfile.TemporaryDirectory(prefix="weft-drill-") as place:
            folder = Path(place)
            folder.chmod(0o755)
            async with site_in(folder / f"site-{number}", make) as site:
                (folder / "ledger").mkdir()
                print((await play(site, plan, folder / "ledger")).line(), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
